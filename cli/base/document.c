/* document.c: headings, lines and tables as text or Markdown; numbers as text; CSV. */
#include "base/document.h"

#include "base/console.h"
#include "vlmprof.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void print_csv_text(const char *text) {
    int quote = text[strcspn(text, ",\"\r\n")] != 0;
    if (quote) putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    if (quote) putchar('"');
}

static text_block *document_add(document *d, block_kind kind) {
    d->blocks = resize(d->blocks, d->count + 1, sizeof *d->blocks);
    memset(&d->blocks[d->count], 0, sizeof *d->blocks);
    d->blocks[d->count].kind = kind;
    return &d->blocks[d->count++];
}
void document_text(document *d, block_kind kind, const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    document_add(d, kind)->text = copy_text(line, strlen(line));
}
text_list *document_table(document *d, const char *heads) {
    text_block *b = document_add(d, BLOCK_TABLE);
    for (;;) {
        size_t bytes = strcspn(heads, "|");
        text_list_add(&b->cells, "%.*s", (int)bytes, heads);
        b->columns++;
        if (!heads[bytes]) return &b->cells;
        heads += bytes + 1;
    }
}
void document_free(document *d) {
    for (size_t i = 0; i < d->count; i++) {
        free(d->blocks[i].text);
        text_list_free(&d->blocks[i].cells);
    }
    free(d->blocks);
}
size_t text_width(const char *text) {
    size_t width = 0;
    for (; *text; text++) width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}
static void text_pad(text_buffer *out, size_t width, char with) { while (width--) text_add(out, &with, 1); }
static void print_table(text_buffer *out, const text_block *b, int is_markdown) {
    size_t *widths = zeroed(b->columns, sizeof *widths), rows = b->cells.count / b->columns;
    for (size_t i = 0; i < rows * b->columns; i++)
        if (text_width(b->cells.items[i]) > widths[i % b->columns]) widths[i % b->columns] = text_width(b->cells.items[i]);
    for (size_t i = 0; i < rows * b->columns; i++) {
        size_t at = i % b->columns, pad = widths[at] - text_width(b->cells.items[i]);
        text_add_string(out, is_markdown ? (at ? " | " : "| ") : at ? "  " : "  ");
        if (at) text_pad(out, pad, ' '); /* numbers to the right, names to the left */
        text_add_string(out, b->cells.items[i]);
        if (!at && b->columns > 1) text_pad(out, pad, ' ');
        if (at + 1 < b->columns) continue;
        text_add_string(out, is_markdown ? " |\n" : "\n");
        for (size_t c = 0; is_markdown && i + 1 == b->columns && c < b->columns; c++) {
            text_add_string(out, "|");
            text_pad(out, widths[c] + 1, '-');
            text_add_string(out, c ? ":" : "-");
        }
        if (is_markdown && i + 1 == b->columns) text_add_string(out, "|\n");
    }
    free(widths);
}
void document_print(const document *d, int is_markdown, text_buffer *out) {
    for (size_t i = 0; i < d->count; i++) {
        const text_block *b = &d->blocks[i];
        if (i && (b->kind != BLOCK_LINE || d->blocks[i - 1].kind != BLOCK_LINE)) text_add_string(out, "\n");
        if (b->kind == BLOCK_TABLE) print_table(out, b, is_markdown);
        else {
            if (is_markdown) text_add_string(out, b->kind == BLOCK_HEADING ? "## " : "- ");
            else if (b->kind == BLOCK_LINE) text_add_string(out, "  ");
            text_add_string(out, b->text);
            text_add_string(out, "\n");
        }
    }
}
figure figure_of(const char *format, double value) {
    figure f;
    if (isfinite(value)) snprintf(f.text, sizeof f.text, format, value); else snprintf(f.text, sizeof f.text, "-");
    return f;
}
/* Four digits that matter of a value of this size, without an exponent where people do without. */
static figure figure_sized(double value, double size) {
    figure f = figure_of(size >= 1000 || !(size > 0) ? "%.0f" : size >= 100 ? "%.1f" : size >= 10 ? "%.2f" : size >= 0.01 ? "%.3f" : "%.2e", value);
    if (f.text[0] == '-' && f.text[1] && !f.text[1 + strspn(f.text + 1, "0.")]) memmove(f.text, f.text + 1, strlen(f.text)); /* no "-0.000" */
    return f;
}
figure figure_number(double value) { return figure_sized(value, fabs(value)); }
figure figure_percent(double share) { return figure_of("%.1f", 100 * share); }
static double range_size(double low, double high) {
    return isfinite(low) && isfinite(high) ? fmax(fabs(low), fabs(high)) : isfinite(low) ? fabs(low) : fabs(high);
}
figure figure_range(double scale, double low, double high) {
    double size = range_size(low, high) * scale;
    figure f, a = figure_sized(low * scale, size), b = figure_sized(high * scale, size);
    if (isfinite(low) || isfinite(high)) snprintf(f.text, sizeof f.text, "[%.28s, %.28s]", a.text, b.text);
    else f.text[0] = 0;
    return f;
}
figure figure_estimate(double scale, double value, double low, double high) {
    double size = range_size(low, high) > fabs(value) ? range_size(low, high) : fabs(value);
    figure f, v = figure_sized(value * scale, size * scale), range = figure_range(scale, low, high);
    snprintf(f.text, sizeof f.text, "%.24s%s%.36s", v.text, range.text[0] ? " " : "", range.text);
    return f;
}

/* ---- CSV */
void csv_text(text_buffer *out, const char *text) {
    int quoted = text[strcspn(text, ",\"\n\r")] != 0;
    if (quoted) text_add_string(out, "\"");
    for (const char *c = text; *c; c++) text_add(out, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    if (quoted) text_add_string(out, "\"");
}
void csv_number(text_buffer *out, double value) {
    char text[26];
    vp_number_format(value, text);
    text_add_string(out, ",");
    text_add_string(out, text);
}
int print_whole(const text_buffer *out) {
    return fwrite(out->data, 1, out->bytes, stdout) == out->bytes ? 0 : complain(EXIT_OUTPUT, "stdout cannot be written: %s", strerror(errno));
}
int print_document(const document *d) {
    text_buffer out = {NULL, 0, 0};
    int code;
    document_print(d, 0, &out);
    code = print_whole(&out);
    free(out.data);
    return code;
}
