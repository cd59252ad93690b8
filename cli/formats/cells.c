/* cells.c: reads text tables, TSV and CSV, as pandas.read_csv does. The rules are those of pandas 2.3.3: its
 * tokenizer's states, its words for missing cells, its precise_xstrtod. */
#include "formats/cells.h"

#include "base/json.h"
#include "vlmprof_file.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- cells of a row */
static void begin_cell(struct cells *cells) {
    if (cells->start_count == cells->start_capacity) {
        cells->start_capacity = cells->start_capacity * 2 + 32;
        cells->starts = resize(cells->starts, cells->start_capacity, sizeof *cells->starts);
    }
    cells->starts[cells->start_count++] = cells->text.bytes;
}
/* Adds the plain bytes starting at a position, up to a separator, a newline, or (in quotes) a quote. Returns the
 * position after them. */
static int64_t add_plain(struct cells *cells, int64_t place, int is_quoted) {
    int byte;
    while ((byte = window_byte(&cells->window, place)) >= 0) {
        const char *start = cells->window.data + (place - cells->window.start),
                   *end = cells->window.data + cells->window.bytes, *at = start;
        if (is_quoted) while (at < end && *at != '"') at++;
        else while (at < end && *at != cells->delimiter && *at != '\n' && *at != '\r') at++;
        if (cells->text.bytes < CELL_BYTES_MAX) text_add(&cells->text, start, (size_t)(at - start));
        place += at - start;
        if (at < end) break;
    }
    return place;
}
enum row_end { ROW_NONE, ROW_READ, ROW_CUT };

/* Reads the row at *place into text and starts, and moves *place after it. ROW_NONE: the file has ended. ROW_CUT: it
 * ended within quotes. */
static enum row_end read_row(struct cells *cells, int64_t *place) {
    int byte;
    cells->text.bytes = cells->start_count = 0;
    if (window_byte(&cells->window, *place) < 0) return ROW_NONE;
    for (;;) {
        begin_cell(cells);
        if (window_byte(&cells->window, *place) == '"') {
            ++*place;
            for (;;) {
                *place = add_plain(cells, *place, 1);
                if (window_byte(&cells->window, *place) < 0) return ROW_CUT;
                ++*place;
                if (window_byte(&cells->window, *place) != '"') break;
                text_add(&cells->text, "\"", 1);
                ++*place;
            }
        }
        *place = add_plain(cells, *place, 0);
        byte = window_byte(&cells->window, *place);
        text_add(&cells->text, "", 1);
        if (byte >= 0) ++*place;
        if (byte == '\r' && window_byte(&cells->window, *place) == '\n') ++*place;
        if (byte != cells->delimiter) return ROW_READ;
    }
}
/* Moves *place after blank lines. */
static void skip_blank_lines(struct cells *cells, int64_t *place) {
    int64_t at = *place;
    for (;;) {
        int byte = window_byte(&cells->window, at);
        if (byte == '\n' || byte == '\r') *place = ++at;
        else if ((byte == ' ' || byte == '\t') && byte != cells->delimiter) at++;
        else {
            if (byte < 0) *place = at;
            return;
        }
    }
}
struct cell cell_written(const struct cells *cells, size_t column) {
    struct cell cell = {"", 0, 1};
    static const char *const missing[] = {"",     "#N/A",   "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN",
                                          "-nan", "1.#IND", "1.#QNAN",  "<NA>", "N/A",     "NA",       "NULL",
                                          "NaN",  "None",   "n/a",      "nan",  "null"};
    if (column >= cells->start_count) return cell;
    size_t end = column + 1 < cells->start_count ? cells->starts[column + 1] : cells->text.bytes;
    cell.text = cells->text.data + cells->starts[column];
    cell.bytes = end - cells->starts[column] - 1;
    cell.is_missing = 0;
    for (size_t i = 0; cell.bytes < 10 && i < sizeof missing / sizeof *missing; i++)
        cell.is_missing |= !strcmp(cell.text, missing[i]);
    return cell;
}

/* ---- numbers */
static const char *skip_space(const char *text) {
    while (*text && strchr(" \t\n\v\f\r", *text)) text++;
    return text;
}
/* Returns 0 if not an integer; 1 if within int64; 2 if within uint64; 3 if larger. */
static int whole_number(const char *text, int64_t *value, uint64_t *magnitude) {
    const char *at = skip_space(text);
    int is_negative = *at == '-', is_long = 0;
    *magnitude = 0;
    if (*at == '-' || *at == '+') at++;
    if (!isdigit((unsigned char)*at)) return 0;
    for (; isdigit((unsigned char)*at); at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (*magnitude > (UINT64_MAX - digit) / 10) is_long = 1;
        else *magnitude = *magnitude * 10 + digit;
    }
    if (*skip_space(at)) return 0;
    if (is_long) return 3;
    if (is_negative) {
        if (*magnitude > (uint64_t)INT64_MAX + 1) return 3;
        *value = *magnitude == (uint64_t)INT64_MAX + 1 ? INT64_MIN : -(int64_t)*magnitude;
        return 1;
    }
    if (*magnitude > INT64_MAX) return 2;
    *value = (int64_t)*magnitude;
    return 1;
}
/* 10^n, from the same table as in pandas. */
static double power_of_ten(int n) {
    char text[16];
    snprintf(text, sizeof text, "1e%d", n);
    return strtod(text, NULL);
}
/* Reads the digits of a number. At most 17 count; digits left out before the point are added to *exponent. */
static const char *read_digits(const char *at, double *number, int *exponent, int *digits) {
    int decimals = 0;
    for (; isdigit((unsigned char)*at); at++) {
        if (*digits < 17) {
            *number = *number * 10. + (*at - '0');
            ++*digits;
        } else if (*exponent < 100000) ++*exponent;
    }
    if (*at != '.') return at;
    for (at++; *digits < 17 && isdigit((unsigned char)*at); at++, ++*digits, decimals++)
        *number = *number * 10. + (*at - '0');
    if (*digits >= 17) while (isdigit((unsigned char)*at)) at++;
    *exponent -= decimals;
    return at;
}
/* Reads a real number as pandas does (precise_xstrtod); it may differ from the nearest one in the last bit. */
static int real_number(const char *text, double *value) {
    static const char *const words[] = {"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"};
    const char *at = skip_space(text);
    double number = 0;
    int exponent = 0, digits = 0, is_negative = *at == '-';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(text, words[i])) {
            *value = words[i][0] == '-' ? -HUGE_VAL : HUGE_VAL;
            return 1;
        }
    if (*at == '-' || *at == '+') at++;
    at = read_digits(at, &number, &exponent, &digits);
    if (!digits) return 0;
    if (is_negative) number = -number;
    if (*at == 'e' || *at == 'E') {
        int minus = at[1] == '-', n = 0, count = 0;
        const char *power = at + 1 + (at[1] == '-' || at[1] == '+');
        for (; isdigit((unsigned char)*power) && count < 9; power++, count++) n = n * 10 + (*power - '0');
        if (!count) return 0;
        while (isdigit((unsigned char)*power)) power++;
        exponent += minus ? -n : n;
        at = power;
    }
    if (*skip_space(at) || exponent > 308) return 0;
    if (exponent > 0) number *= power_of_ten(exponent);
    else if (exponent < -616) number = 0;
    else if (exponent < -308) number = number / power_of_ten(-308 - exponent) / power_of_ten(308);
    else number /= power_of_ten(-exponent);
    *value = number;
    return isfinite(number);
}
void python_float(double value, char *out, size_t capacity) {
    char digits[40];
    int precision = 0, exponent;
    if (isnan(value)) snprintf(out, capacity, "nan");
    else if (isinf(value)) snprintf(out, capacity, value < 0 ? "-inf" : "inf");
    if (!isfinite(value)) return;
    while (snprintf(digits, sizeof digits, "%.*e", precision, value), precision < 16 && strtod(digits, NULL) != value)
        precision++;
    exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent >= -4 && exponent < 16)
        snprintf(out, capacity, "%.*f", precision > exponent + 1 ? precision - exponent : 1, value);
    else snprintf(out, capacity, "%s", digits);
}
/* Returns 1 or 0 for pandas' words for true and false, otherwise -1. */
static int truth(const char *text) {
    if (!strcmp(text, "True") || !strcmp(text, "TRUE") || !strcmp(text, "true")) return 1;
    return !strcmp(text, "False") || !strcmp(text, "FALSE") || !strcmp(text, "false") ? 0 : -1;
}

/* ---- types of columns */
/* How far pandas gets with a column as int64, then as uint64: to its end, to a number out of range, or to another
 * cell. */
enum pass { PASS_GOOD, PASS_BEYOND, PASS_FAILED };
/* The types of a column's cells so far. */
struct sight {
    enum pass ints, unsigneds;
    int count, missing, is_signed, is_high, real, truths; /* is_high: above int64 */
};

static void see_cell(struct sight *sight, const struct cell *cell) {
    const int is_short = cell->bytes <= SHORT_CELL_BYTES * 4;
    int64_t value;
    uint64_t magnitude;
    double number;
    int whole;
    if (cell->is_missing) {
        sight->missing = 1;
        return;
    }
    sight->count = 1;
    if (sight->ints == PASS_GOOD || sight->unsigneds == PASS_GOOD) {
        whole = is_short ? whole_number(cell->text, &value, &magnitude) : 0;
        if (sight->ints == PASS_GOOD) sight->ints = whole == 1 ? PASS_GOOD : whole ? PASS_BEYOND : PASS_FAILED;
        if (*skip_space(cell->text) == '-') sight->is_signed = 1; /* the second pass stops here */
        else if (sight->unsigneds == PASS_GOOD) {
            sight->is_high |= whole == 2;
            sight->unsigneds = whole == 3 ? PASS_BEYOND : whole ? PASS_GOOD : PASS_FAILED;
        }
    }
    if (sight->real && !(is_short && real_number(cell->text, &number))) sight->real = 0;
    if (sight->truths && truth(cell->text) < 0) sight->truths = 0;
}
static enum column_type type_of(const struct sight *sight) {
    if (!sight->count) return COLUMN_EMPTY;
    if (sight->ints == PASS_GOOD) return sight->missing ? COLUMN_WHOLE_FLOAT : COLUMN_INT;
    if (sight->ints == PASS_BEYOND && sight->unsigneds != PASS_FAILED) {
        if (sight->unsigneds == PASS_BEYOND || !sight->is_high) return COLUMN_TEXT;
        return sight->is_signed || sight->missing ? COLUMN_RAW : COLUMN_UNSIGNED;
    }
    return sight->real ? COLUMN_FLOAT : sight->truths ? COLUMN_BOOL : COLUMN_TEXT;
}
struct cell cell_said(struct cells *cells, size_t column) {
    struct cell cell = cell_written(cells, column);
    int64_t value = 0;
    uint64_t magnitude = 0;
    double number = 0;
    if (cells->types[column] == COLUMN_RAW) cell.is_missing = 0;
    if (cell.is_missing || cells->types[column] >= COLUMN_TEXT) return cell;
    if (cells->types[column] == COLUMN_WHOLE_FLOAT) {
        whole_number(cell.text, &value, &magnitude);
        python_float((double)value, cells->said[column], sizeof *cells->said);
    } else if (cells->types[column] == COLUMN_FLOAT) {
        real_number(cell.text, &number);
        python_float(number, cells->said[column], sizeof *cells->said);
    } else if (cells->types[column] == COLUMN_BOOL)
        snprintf(cells->said[column], sizeof *cells->said, truth(cell.text) == 1 ? "True" : "False");
    else if (whole_number(cell.text, &value, &magnitude) == 1)
        snprintf(cells->said[column], sizeof *cells->said, "%lld", (long long)value);
    else snprintf(cells->said[column], sizeof *cells->said, "%llu", (unsigned long long)magnitude);
    cell.text = cells->said[column];
    cell.bytes = strlen(cell.text);
    return cell;
}
size_t cells_column(const struct cells *cells, const char *name) {
    for (size_t i = 0; i < cells->names.count; i++) if (!strcmp(cells->names.items[i], name)) return i;
    return SIZE_MAX;
}

/* ---- the file */
static void add_row(struct cells *cells, int64_t place) {
    if (cells->row_count == cells->row_capacity) {
        cells->row_capacity = cells->row_capacity * 3 / 2 + 256;
        cells->places = resize(cells->places, cells->row_capacity, sizeof *cells->places);
    }
    cells->places[cells->row_count++] = place;
}
/* Reads the names in the first line. *place moves after it. */
static vp_result read_names(struct cells *cells, int64_t *place, vp_error *error) {
    const char *path = cells->window.source.path;
    if (window_byte(&cells->window, 0) == 0xEF && window_byte(&cells->window, 1) == 0xBB &&
        window_byte(&cells->window, 2) == 0xBF)
        *place = 3;
    skip_blank_lines(cells, place);
    enum row_end end = read_row(cells, place);
    if (end == ROW_NONE) return vp_fail(error, VP_ERR_FORMAT, 0, path, "the file is empty");
    if (end == ROW_CUT) return vp_fail(error, VP_ERR_FORMAT, 0, path, "a quoted name in the first line is not closed");
    if (cells->start_count > COLUMNS_MAX) return vp_fail(error, VP_ERR_FORMAT, 0, path, "over 10000 columns");
    for (size_t i = 0; i < cells->start_count; i++) {
        const char *name = cells->text.data + cells->starts[i];
        char lower[64];
        /* VLMEvalKit converts names to lower case unless they are single capitals */
        size_t bytes = strlen(name);
        int is_short = bytes > 1 && bytes < sizeof lower;
        for (size_t k = 0; is_short && k <= bytes; k++) lower[k] = (char)tolower((unsigned char)name[k]);
        text_list_copy(&cells->names, is_short ? lower : name);
    }
    cells->types = zeroed(cells->names.count, sizeof *cells->types);
    cells->said = zeroed(cells->names.count, sizeof *cells->said);
    return VP_OK;
}
vp_result cells_open(struct cells *cells, const char *path, char delimiter,
                     vp_result (*each)(void *user, struct cells *cells, size_t row), void *user, vp_error *error) {
    struct sight *sights = NULL;
    int64_t place = 0, start;
    enum row_end end = ROW_NONE;
    vp_result result = source_open(&cells->window.source, path, error);
    cells->delimiter = delimiter;
    if (result == VP_OK) result = read_names(cells, &place, error);
    if (result != VP_OK) return result;
    sights = zeroed(cells->names.count, sizeof *sights);
    for (size_t i = 0; i < cells->names.count; i++) sights[i].real = sights[i].truths = 1;
    while (result == VP_OK) {
        skip_blank_lines(cells, &place);
        start = place;
        end = read_row(cells, &place);
        if (end == ROW_NONE) break;
        for (size_t i = 0; i < cells->names.count; i++) {
            struct cell cell = cell_written(cells, i);
            see_cell(&sights[i], &cell);
        }
        add_row(cells, start);
        if (end == ROW_CUT)
            result = vp_failf(error, VP_ERR_FORMAT, start, path, "a quoted cell in row %zu is not closed",
                              cells->row_count);
        else if (each) result = each(user, cells, cells->row_count - 1);
    }
    for (size_t i = 0; i < cells->names.count; i++) cells->types[i] = type_of(&sights[i]);
    free(sights);
    return result;
}
void cells_close(struct cells *cells) {
    window_close(&cells->window);
    text_list_free(&cells->names);
    FREE_ALL(cells->types, cells->places, cells->text.data, cells->starts, cells->said);
    memset(cells, 0, sizeof *cells);
    cells->window.source.fd = -1;
}
vp_result cells_row(struct cells *cells, size_t row, vp_error *error) {
    int64_t place = cells->places[row];
    if (read_row(cells, &place) != ROW_READ)
        return vp_fail(error, VP_ERR_READ, place, cells->window.source.path, "the file changed while it was read");
    if (cells->start_count > cells->names.count)
        return vp_failf(error, VP_ERR_FORMAT, cells->places[row], cells->window.source.path,
                        "the row has %zu cells, but the first line names %zu columns", cells->start_count,
                        cells->names.count);
    return VP_OK;
}

/* ---- Python literals */
static void add_code(struct text_buffer *out, uint32_t code) {
    char bytes[4];
    size_t count = vp_utf8_put(bytes, code);
    text_add(out, bytes, count);
}
static int hex_digits(const char *at, int count, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < count; i++) {
        if (!isxdigit((unsigned char)at[i])) return 0;
        *code = *code << 4 | (uint32_t)(isdigit((unsigned char)at[i]) ? at[i] - '0' : (at[i] | 32) - 'a' + 10);
    }
    return *code <= 0x10FFFF;
}
/* Reads an escape after the backslash at *at. Returns 0 if Python does not support it. */
static int read_escape(const char **at, struct text_buffer *out) {
    static const char letters[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
    const char *found = **at ? strchr(letters, **at) : NULL;
    uint32_t code = 0;
    int count = **at == 'x' ? 2 : **at == 'u' ? 4 : **at == 'U' ? 8 : 0;
    if (found) text_add(out, &values[found - letters], 1);
    else if (**at == '\n') { } /* a continued line */
    else if (count) {
        if (!hex_digits(*at + 1, count, &code)) return 0;
        *at += count;
        add_code(out, code);
    } else if (**at >= '0' && **at <= '7') {
        for (count = 0; count < 3 && **at >= '0' && **at <= '7'; count++, ++*at)
            code = code * 8 + (uint32_t)(**at - '0');
        --*at;
        add_code(out, code);
    } else {
        if (!**at || **at == 'N') return 0;
        text_add(out, "\\", 1); /* Python keeps the backslash of an unknown escape */
        return 1;
    }
    ++*at;
    return 1;
}
/* Reads a string, or several consecutive ones, which Python joins. */
static int read_string(const char **at, struct text_buffer *out) {
    while (**at == '\'' || **at == '"') {
        const char quote = *(*at)++;
        int is_long = (*at)[0] == quote && (*at)[1] == quote;
        if (is_long) *at += 2;
        while (**at && (**at != quote || (is_long && ((*at)[1] != quote || (*at)[2] != quote)))) {
            if (**at == '\n' && !is_long) return 0;
            if (**at == '\\') {
                ++*at;
                if (!read_escape(at, out)) return 0;
            } else text_add(out, (*at)++, 1);
        }
        if (!**at) return 0;
        *at = skip_space(*at + (is_long ? 3 : 1));
    }
    return 1;
}
/* Reads a number as Python does (digits with underscores, a point, an exponent) and formats it as by str(). */
static int read_number(const char **at, struct text_buffer *out) {
    char digits[64], said[40];
    size_t count = 0;
    char *end;
    int is_real = 0;
    if (**at == '-' || **at == '+') {
        if (**at == '-') digits[count++] = '-';
        *at = skip_space(*at + 1);
    }
    while (count + 1 < sizeof digits && (isalnum((unsigned char)**at) || (**at && strchr("._", **at))
                                         || ((**at == '-' || **at == '+') && (*at)[-1] == 'e'))) {
        if (**at != '_') digits[count++] = (char)tolower((unsigned char)**at);
        if (**at == '.' || **at == 'e' || **at == 'E') is_real = 1;
        ++*at;
    }
    digits[count] = 0;
    if (count + 1 == sizeof digits || !strpbrk(digits, "0123456789") || strpbrk(digits, "abcdfghijklmnopqrstuvwxyz"))
        return 0;
    if (is_real) {
        python_float(strtod(digits, &end), said, sizeof said);
        if (*end) return 0;
        text_add_string(out, said);
        return 1;
    }
    {
        const char *first = digits + (digits[0] == '-');
        size_t zeros = strspn(first, "0");
        if (zeros && first[zeros]) return 0; /* Python has no number like 007 */
        if (zeros) first += zeros - 1;
        text_add_string(out, digits[0] == '-' && *first != '0' ? "-" : "");
        text_add_string(out, first);
    }
    return 1;
}
/* Reads one element. An inner list is kept as written, because nothing compares it. */
static int read_element(const char **at, struct text_buffer *out) {
    static const char *const words[] = {"None", "True", "False"};
    if (**at == '\'' || **at == '"') return read_string(at, out);
    for (size_t i = 0; i < 3; i++)
        if (!strncmp(*at, words[i], strlen(words[i])) && !isalnum((unsigned char)(*at)[strlen(words[i])])) {
            text_add_string(out, words[i]);
            *at = skip_space(*at + strlen(words[i]));
            return 1;
        }
    if (!read_number(at, out)) return 0;
    *at = skip_space(*at);
    return 1;
}
int python_list(const char *text, struct text_list *list) {
    const char *at = skip_space(text);
    struct text_buffer element = {NULL, 0, 0};
    size_t before = list->count;
    int good = *at == '[';
    if (good) at = skip_space(at + 1);
    while (good && *at != ']') {
        element.bytes = 0;
        text_add(&element, "", 0);
        good = read_element(&at, &element);
        if (good) text_list_take(list, copy_text(element.data, element.bytes));
        if (good && *at == ',') at = skip_space(at + 1);
        else if (*at != ']') good = 0;
    }
    free(element.data);
    if (good && !*skip_space(at + 1)) return 1;
    while (list->count > before) free(list->items[--list->count]);
    return 0;
}
int python_texts(const char *text, struct text_list *list) {
    size_t bytes = strlen(text);
    if (bytes >= 2 && text[0] == '[' && text[bytes - 1] == ']') return python_list(text, list);
    text_list_copy(list, text);
    return 1;
}
