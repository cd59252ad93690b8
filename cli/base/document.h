/* document.h: headings, lines and tables as text or Markdown; numbers as text; CSV. */
#ifndef VLMPROF_CLI_DOCUMENT_H
#define VLMPROF_CLI_DOCUMENT_H
#include "base/memory.h"
#include <stddef.h>

struct column { const char *name; size_t offset; }; /* a number's name, and its place in a struct */

void print_csv_text(const char *text);

typedef enum block_kind { BLOCK_HEADING, BLOCK_LINE, BLOCK_TABLE } block_kind;
/* of a table: first its heads */
struct text_block { block_kind kind; char *text; size_t columns; struct text_list cells; };
struct document { struct text_block *blocks; size_t count; };

void document_text(struct document *document, block_kind kind, const char *format, ...);

/* heads: separated by |; cells follow by text_list_add(table->...) row by row, until the next block is added */
struct text_list *document_table(struct document *document, const char *heads);
void document_free(struct document *document);

/* columns that a text takes on a screen: UTF-8's continuation bytes take none */
size_t text_width(const char *text);
void document_print(const struct document *document, int is_markdown, struct text_buffer *out);

struct number_text { char text[64]; };

struct number_text number_formatted(const char *format, double value);
struct number_text number_short(double value);
struct number_text number_percent(double share);
/* "[1.2, 3.4]", both with the decimals of the larger; empty: no interval */
struct number_text number_range(double scale, double low, double high);
struct number_text number_estimate(double scale, double value, double low, double high); /* "2.3 [1.2, 3.4]" */

void csv_text(struct text_buffer *out, const char *text);
void csv_number(struct text_buffer *out, double value); /* empty: none */
int print_whole(const struct text_buffer *out);
int print_document(const struct document *document);

#endif
