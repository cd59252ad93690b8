/* document.h: headings, lines and tables as text or Markdown; numbers as text; CSV. */
#ifndef VLMPROF_CLI_DOCUMENT_H
#define VLMPROF_CLI_DOCUMENT_H
#include "base/memory.h"
#include <stddef.h>

typedef struct column { const char *name; size_t offset; } column; /* a number's name, and its place in a struct */

void print_csv_text(const char *text);

typedef enum block_kind { BLOCK_HEADING, BLOCK_LINE, BLOCK_TABLE } block_kind;
typedef struct text_block { block_kind kind; char *text; size_t columns; text_list cells; } text_block; /* of a table: first its heads */
typedef struct document { text_block *blocks; size_t count; } document;

void document_text(document *d, block_kind kind, const char *format, ...);

/* heads: separated by |; cells follow by text_list_add(table->...) row by row, until the next block is added */
text_list *document_table(document *d, const char *heads);
void document_free(document *d);

/* columns that a text takes on a screen: UTF-8's continuation bytes take none */
size_t text_width(const char *text);
void document_print(const document *d, int is_markdown, text_buffer *out);

typedef struct figure { char text[64]; } figure;

figure figure_of(const char *format, double value);
figure figure_number(double value);
figure figure_percent(double share);
figure figure_range(double scale, double low, double high); /* "[1.2, 3.4]", both with the decimals of the larger; empty: no interval */
figure figure_estimate(double scale, double value, double low, double high); /* "2.3 [1.2, 3.4]" */

void csv_text(text_buffer *out, const char *text);
void csv_number(text_buffer *out, double value); /* empty: none */
int print_whole(const text_buffer *out);
int print_document(const document *d);

#endif
