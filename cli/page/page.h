/* page.h: the building blocks of the HTML pages: escaped texts, elements, sections, tables, head and foot. A page needs
 * no network and no other file: page_write includes the style sheets and scripts of this folder. */
#ifndef VLMPROF_CLI_PAGE_H
#define VLMPROF_CLI_PAGE_H
#include "results/result_read.h"

/* Adds markup: numbers and our own words, never text from a file. */
#define page_add text_add_format

/* Adds a text as content, or as an attribute in quotes. Bytes that are not text are shown as U+FFFD. */
void page_text(struct text_buffer *out, const char *text);

/* Adds <tag>text</tag>; tag is one of our own names. */
void page_element(struct text_buffer *out, const char *tag, const char *text);

/* Adds the day of a date and time in ISO 8601; date may be NULL. */
void page_day(struct text_buffer *out, const char *date);

/* Adds the texts of a list between two indices, as an HTML list; nothing if there are none. */
void page_items(struct text_buffer *out, const struct text_list *items, size_t from, size_t to);

/* Adds the box of warnings, if there are any. */
void page_warnings(struct text_buffer *out, const struct text_list *warnings);

/* Opens the part of a section that shows one data set, under its name if there are several; the reader can then hide
 * it. Ends with </div>. */
void page_set_open(struct text_buffer *out, const struct results *results, size_t group);

/* Opens a section; links in the page's head lead to its id. */
void page_section_open(struct text_buffer *out, const char *id, const char *heading);
void page_section_close(struct text_buffer *out);

/* Opens a section that is folded until the reader opens it, with a heading and a line about its contents. is_open: it
 * is open from the start. Prints show all folded parts. */
void page_folded_open(struct text_buffer *out, const char *id, const char *heading, const char *what, int is_open);
void page_folded_close(struct text_buffer *out);

/* Opens a folded part of a section, with a summary and a grid of figures. */
void page_more_open(struct text_buffer *out, const char *what);
void page_more_close(struct text_buffer *out);

/* A folded section with a list of names and their meanings or values. page_list_item adds one of them. */
void page_list_open(struct text_buffer *out, const char *id, const char *heading, const char *what);
void page_list_item(struct text_buffer *out, const char *name, const char *text);
void page_list_close(struct text_buffer *out);

/* Adds the glossary: terms and their meanings. */
void page_words(struct text_buffer *out, const char *const words[][2], size_t count);

/* Opens a table that scrolls sideways, up to its column heads. Ends with </table></div>. */
void page_table_open(struct text_buffer *out, const char *label, int is_sorted);

/* Adds column heads; names are separated by |. In a sorted table, a click on a head sorts by numbers or letters. */
typedef enum page_head { HEAD_FIXED, HEAD_NUMBERS, HEAD_TEXTS } page_head;
void page_heads(struct text_buffer *out, page_head kind, const char *names);

/* Adds a whole sorted table by its description; the first column names the row. */
struct table;
void page_table_of(struct text_buffer *out, const char *caption, const struct table *table);

/* Adds a whole table of cells, row by row; heads are separated by |. */
void page_cells(struct text_buffer *out, const char *caption, const char *heads, const struct text_list *cells);

/* A whole page. Its writer adds markup to the buffers. */
struct page {
    struct text_buffer heading, subtitle, body;
    int is_titled_by_both;  /* 1 if the page's title is heading and subtitle, not only the heading */
    int has_chart;          /* 1 if it includes the flame chart's style sheet and script */
};
/* A link in the page's head; omitted if the page has no such section. The last one has no id. */
struct page_link { const char *id, *name; };

/* Adds the page, and frees its buffers. */
void page_write(struct page *page, const struct page_link *links, struct text_buffer *out);

/* The lines of this folder's style sheets and scripts; each array ends with NULL. */
extern const char *const PAGE_CSS[], *const PAGE_JS[], *const FLAME_CSS[], *const FLAME_JS[];

#endif
