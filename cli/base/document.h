/* document.h: headings, lines and tables as text; numbers as text; CSV.
 * A command adds blocks to a document, then prints it whole in one of the two forms. */
#ifndef VLMPROF_CLI_DOCUMENT_H
#define VLMPROF_CLI_DOCUMENT_H
#include "base/console.h"
#include "base/memory.h"

struct column { const char *name; size_t offset; }; /* the name of a number, and its offset in a struct */

typedef enum block_kind { BLOCK_HEADING, BLOCK_LINE, BLOCK_TABLE } block_kind;
struct text_block {
    block_kind kind;
    char *text;                             /* a heading or a line */
    size_t columns; struct text_list cells; /* a table's, row by row; the first row has the heads */
};
/* The colour of a heading or of a cell in the last column; COLOR_END for none. */
typedef enum console_color text_color(const char *text);
struct document {
    struct text_block *blocks; size_t count;
    text_color *color_of; /* used if stdout has colours; NULL: no colours */
};

/* Adds an empty block, which is valid until the next one is added. */
struct text_block *document_add(struct document *document, block_kind kind);

/* Adds a heading or a line; its text is cut at LINE_BYTES. */
void document_text(struct document *document, block_kind kind, const char *format, ...);

/* Adds a heading and a line for each text; adds nothing for an empty list. */
void document_list(struct document *document, const char *heading, const struct text_list *texts);

/* Adds a table; `heads` are separated by |. The caller appends the cells to the returned list, row by row. The list is
 * valid until the next block is added. */
struct text_list *document_table(struct document *document, const char *heads);
void document_free(struct document *document); /* leaves it empty */

/* The number of screen columns of a text: one per UTF-8 character. */
size_t text_width(const char *text);

/* Appends the whole document to out. Control characters become '?'. */
void document_print(const struct document *document, struct text_buffer *out);

struct number_text { char text[64]; };

/* Appends several cells to a table's list. */
#define CELLS(list, ...) \
    add_cells(list, (const char *const[]){__VA_ARGS__}, sizeof(const char *const[]){__VA_ARGS__} / sizeof(const char *))
void add_cells(struct text_list *cells, const char *const *texts, size_t count);

struct number_text number_whole(int64_t value);
struct number_text number_formatted(const char *format, double value); /* "-" if the value is not finite */
struct number_text number_short(double value);                         /* about four significant digits */
struct number_text number_percent(double share);                       /* one decimal, without the % */

/* "2.3 [1.2, 3.4]", rounded to a power of ten below a twentieth of the range and a tenth of the value, so that noise
 * is not printed. Without a range: three significant digits. Every interval in text output is rounded here. */
struct number_text number_measured(double value, double low, double high);
struct number_text number_value(double value, double low, double high); /* the value of the above, without the range */
struct number_text number_estimate(double scale, double value, double low, double high); /* all times scale */
struct number_text number_change(double scale, double value, double low, double high);   /* "+2.3 [-1.2, +3.4]" */

/* A share of a whole: "83.0 %"; a ratio above 1 is a factor: "1.23 times". */
struct number_text number_share(double share);

/* Appends a word in shell syntax, with quotes if it needs them. */
void shell_word(struct text_buffer *out, const char *word);

/* A CSV field, with quotes if it needs them. Control characters become '?'. A text that a spreadsheet would run as a
 * formula (it begins with = + - @ and is not a number) gets a leading apostrophe. */
void csv_text(struct text_buffer *out, const char *text);

/* Appends a comma and a number with all digits; the field is empty if the value is not finite. */
void csv_number(struct text_buffer *out, double value);

/* Both print on stdout and return 0 or an exit code. print_document then frees the document. */
int print_whole(const struct text_buffer *out);
int print_document(struct document *document);

#endif
