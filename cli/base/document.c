/* document.c: headings, lines and tables as text; numbers as text; CSV.
 * Blocks come in one by one and are stored; document_print measures the tables and appends everything to a text. */
#include "base/document.h"

#include <math.h>
#include <stdarg.h>

struct text_block *document_add(struct document *document, block_kind kind) {
    struct text_block *block = ADDED(document->blocks, document->count);
    block->kind = kind;
    return block;
}
void document_text(struct document *document, block_kind kind, const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    document_add(document, kind)->text = copy_text(line, strlen(line));
}
struct text_list *document_table(struct document *document, const char *heads) {
    struct text_block *block = document_add(document, BLOCK_TABLE);
    for (;;) {
        size_t bytes = strcspn(heads, "|");
        text_list_add(&block->cells, "%.*s", (int)bytes, heads);
        block->columns++;
        if (!heads[bytes]) return &block->cells;
        heads += bytes + 1;
    }
}
void document_list(struct document *document, const char *heading, const struct text_list *texts) {
    if (texts->count) document_text(document, BLOCK_HEADING, "%s", heading);
    for (size_t i = 0; i < texts->count; i++) document_text(document, BLOCK_LINE, "%s", texts->items[i]);
}
void document_free(struct document *document) {
    for (size_t i = 0; i < document->count; i++) {
        free(document->blocks[i].text);
        text_list_free(&document->blocks[i].cells);
    }
    free(document->blocks);
    document->blocks = NULL;
    document->count = 0;
}
size_t text_width(const char *text) {
    size_t width = 0;
    for (; *text; text++) width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}
static void text_pad(struct text_buffer *out, size_t width, char with) { while (width--) text_add(out, &with, 1); }
/* Starts a colour, or ends it with COLOR_END, if the output has colours. */
static void add_color(struct text_buffer *out, enum console_color color, enum console_color bytes_of) {
    if (color != COLOR_END) text_add_string(out, color_bytes(stdout, bytes_of));
}
/* One row. The first column contains names and is aligned left; the others contain numbers and are aligned right. */
static void print_table_row(struct text_buffer *out, char *const *cells, const size_t *widths, size_t columns,
                            text_color *color_of) {
    for (size_t column = 0; column < columns; column++) {
        const enum console_color color = color_of && column + 1 == columns ? color_of(cells[column]) : COLOR_END;
        size_t pad = widths[column] - text_width(cells[column]);
        text_add_string(out, "  ");
        if (column) text_pad(out, pad, ' ');
        add_color(out, color, color);
        text_add_string(out, cells[column]);
        add_color(out, color, COLOR_END);
        if (!column && columns > 1) text_pad(out, pad, ' ');
    }
    text_add_string(out, "\n");
}
/* Appends a text without control characters. */
static void add_plain(struct text_buffer *out, const char *text) {
    char *copy = copy_text(text, strlen(text));
    hide_control_bytes(copy);
    text_add_string(out, copy);
    free(copy);
}
static void print_table(struct text_buffer *out, const struct text_block *block, text_color *color_of) {
    size_t *widths = zeroed(block->columns, sizeof *widths), rows = block->cells.count / block->columns;
    char *const *cells = block->cells.items;
    for (size_t i = 0; i < rows * block->columns; i++) {
        hide_control_bytes(cells[i]);
        size_t width = text_width(cells[i]);
        if (width > widths[i % block->columns]) widths[i % block->columns] = width;
    }
    for (size_t row = 0; row < rows; row++)
        print_table_row(out, cells + row * block->columns, widths, block->columns, color_of);
    free(widths);
}
void document_print(const struct document *document, struct text_buffer *out) {
    text_color *color_of = document->color_of;
    for (size_t i = 0; i < document->count; i++) {
        const struct text_block *block = &document->blocks[i];
        if (i && (block->kind != document->blocks[i - 1].kind || block->kind != BLOCK_LINE))
            text_add_string(out, "\n");
        if (block->kind == BLOCK_TABLE) print_table(out, block, color_of);
        else {
            const enum console_color color =
                color_of && block->kind == BLOCK_HEADING ? color_of(block->text) : COLOR_END;
            if (block->kind != BLOCK_HEADING) text_add_string(out, "  ");
            add_color(out, color, color);
            add_plain(out, block->text);
            add_color(out, color, COLOR_END);
            text_add_string(out, "\n");
        }
    }
}
void add_cells(struct text_list *cells, const char *const *texts, size_t count) {
    for (size_t i = 0; i < count; i++) text_list_add(cells, "%s", texts[i]);
}
struct number_text number_whole(int64_t value) {
    struct number_text number;
    snprintf(number.text, sizeof number.text, "%lld", (long long)value);
    return number;
}
struct number_text number_formatted(const char *format, double value) {
    struct number_text number;
    if (isfinite(value)) snprintf(number.text, sizeof number.text, format, value);
    else snprintf(number.text, sizeof number.text, "-");
    return number;
}
/* Removes the sign of "-0.000". */
static void drop_sign_of_zero(struct number_text *number) {
    if (number->text[0] == '-' && number->text[1] && !number->text[1 + strspn(number->text + 1, "0.")])
        memmove(number->text, number->text + 1, strlen(number->text));
}
/* A value with the decimals that a number of this size needs for about four significant digits. Only sizes below 0.01
 * get an exponent. */
static struct number_text number_sized(double value, double size) {
    struct number_text number = number_formatted(size >= 1000 || !(size > 0) ? "%.0f"
                                                 : size >= 100               ? "%.1f"
                                                 : size >= 10                ? "%.2f"
                                                 : size >= 0.01              ? "%.3f"
                                                                             : "%.2e",
                                                 value);
    drop_sign_of_zero(&number);
    return number;
}
struct number_text number_short(double value) { return number_sized(value, fabs(value)); }
struct number_text number_percent(double share) { return number_formatted("%.1f", 100 * share); }
/* A number rounded to a multiple of 10^exponent. */
static struct number_text number_rounded(double value, int exponent) {
    struct number_text text;
    double unit = exponent > 0 ? pow(10, exponent) : 1;
    int decimals = exponent < -12 ? 12 : exponent < 0 ? -exponent : 0;
    if (!isfinite(value)) return number_formatted("", value);
    snprintf(text.text, sizeof text.text, "%.*f", decimals, exponent > 0 ? round(value / unit) * unit : value);
    drop_sign_of_zero(&text);
    return text;
}
struct number_text number_measured(double value, double low, double high) {
    /* a difference of a millionth is rounding, not spread */
    const int is_range = isfinite(low) && isfinite(high) && high - low > 1e-6 * fmax(fabs(low), fabs(high));
    /* if a skewed range is much wider than its value, the value keeps two digits, but none below 1/1000 of the range */
    const double width = is_range ? high - low : fabs(value) / 5, own = fmax(fabs(value) / 10, width / 1000),
                 size = fabs(value) > 0 ? fmin(width / 20, own) : width / 20;
    /* an end next to 0 keeps its sign */
    const double end = !is_range ? 0 : low > 0 ? low : high < 0 ? -high : 0,
                 unit = end > 1e-3 * width && end < size ? end : size;
    const int exponent = unit > 0 && isfinite(unit) ? (int)floor(log10(unit)) : 0;
    struct number_text text, middle = number_rounded(value, exponent), low_text = number_rounded(low, exponent),
                             high_text = number_rounded(high, exponent);
    if (!is_range) return middle;
    snprintf(text.text, sizeof text.text, "%.20s [%.19s, %.19s]", middle.text, low_text.text, high_text.text);
    return text;
}
struct number_text number_value(double value, double low, double high) {
    struct number_text text = number_measured(value, low, high);
    text.text[strcspn(text.text, " ")] = 0;
    return text;
}
struct number_text number_estimate(double scale, double value, double low, double high) {
    return number_measured(scale * value, scale * low, scale * high);
}
struct number_text number_change(double scale, double value, double low, double high) {
    struct number_text text, plain = number_estimate(scale, value, low, high);
    size_t used = 0;
    for (const char *byte = plain.text; *byte && used + 2 < sizeof text.text; byte++) {
        const int is_first = byte == plain.text || byte[-1] == '[' || byte[-1] == ' ';
        if (is_first && *byte != '-' && strtod(byte, NULL) > 0) text.text[used++] = '+';
        text.text[used++] = *byte;
    }
    text.text[used] = 0;
    return text;
}
struct number_text number_share(double share) {
    return share > 1 ? number_formatted(share < 9.95 ? "%.2f times" : "%.0f times", share)
                     : number_formatted("%.1f %%", 100 * share);
}

/* Returns 1 if the whole text is one number, so a spreadsheet may read it as a number. */
static int is_number(const char *text) {
    char *end;
    if (!strchr("+-.0123456789", *text) || text[strspn(text, "+-.0123456789eE")]) return 0;
    strtod(text, &end);
    return !*end;
}
void shell_word(struct text_buffer *out, const char *word) {
    int plain = *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@+=")];
    if (!plain) text_add_string(out, "'");
    for (const char *byte = word; *byte; byte++)
        if (*byte == '\'') text_add_string(out, "'\\''");
        else text_add(out, byte, 1);
    if (!plain) text_add_string(out, "'");
}
void csv_text(struct text_buffer *out, const char *text) {
    int is_formula = *text && strchr("=+-@", *text) && !is_number(text), quoted = text[strcspn(text, ",\"")] != 0;
    char *copy = copy_text(text, strlen(text));
    hide_control_bytes(copy);
    if (quoted) text_add_string(out, "\"");
    if (is_formula) text_add_string(out, "'");
    for (const char *byte = copy; *byte; byte++) text_add(out, *byte == '"' ? "\"\"" : byte, *byte == '"' ? 2 : 1);
    if (quoted) text_add_string(out, "\"");
    free(copy);
}
void csv_number(struct text_buffer *out, double value) {
    char text[26];
    vp_number_format(value, text);
    text_add_string(out, ",");
    text_add_string(out, text);
}
int print_whole(const struct text_buffer *out) {
    /* flushed, so that stderr does not split a line if both streams go to the same pipe */
    return fwrite(out->data, 1, out->bytes, stdout) == out->bytes && !fflush(stdout) ? 0 : output_failed();
}
int print_document(struct document *document) {
    struct text_buffer out = {NULL, 0, 0};
    document_print(document, &out);
    document_free(document);
    int code = print_whole(&out);
    free(out.data);
    return code;
}
