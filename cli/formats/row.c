/* row.c: one row of a data file: a JSON object, and the bytes that do not fit into JSON. */
#include "formats/row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void row_clear(struct row *row) {
    for (size_t i = 0; i < row->blob_count; i++) free(row->blobs[i].data);
    row->blob_count = 0;
    row->json.bytes = 0;
}
void row_free(struct row *row) {
    row_clear(row);
    FREE_ALL(row->blobs, row->json.data, row->parsed.nodes);
    memset(row, 0, sizeof *row);
}
size_t row_take_blob(struct row *row, unsigned char *data, size_t bytes) {
    if (row->blob_count == row->blob_capacity) {
        row->blob_capacity = row->blob_capacity * 2 + 4;
        row->blobs = resize(row->blobs, row->blob_capacity, sizeof *row->blobs);
    }
    row->blobs[row->blob_count].data = data;
    row->blobs[row->blob_count].bytes = bytes;
    return row->blob_count++;
}
void row_put_bytes(struct row *row, vp_json_writer *writer, const void *data, size_t bytes) {
    if (vp_utf8_valid_bytes(data, bytes) == bytes && !(bytes && memchr(data, 0, bytes))) {
        vp_json_string_bytes(writer, data, bytes);
        return;
    }
    unsigned char *copy = resize(NULL, bytes + 1, 1);
    memcpy(copy, data, bytes);
    PUT(writer, KEY_OBJECT(NULL), KEY("blob", (int64_t)row_take_blob(row, copy, bytes)), END_OBJECT);
}
void row_put_int(vp_json_writer *writer, uint64_t bits, int32_t width, int is_unsigned) {
    const uint64_t sign = (uint64_t)1 << (8 * width - 1);
    char digits[24];
    if (!is_unsigned && bits & sign) snprintf(digits, sizeof digits, "-%llu", (unsigned long long)(sign * 2 - bits));
    else snprintf(digits, sizeof digits, "%llu", (unsigned long long)bits);
    vp_json_raw(writer, digits, strlen(digits));
}
void row_put_float(vp_json_writer *writer, uint64_t bits, int32_t width) {
    const uint32_t low = (uint32_t)bits;
    double number;
    float small;
    memcpy(&number, &bits, sizeof number);
    memcpy(&small, &low, sizeof small);
    json_double_or_null(writer, width == 4 ? (double)small : number);
}
vp_result row_parse(struct row *row, vp_error *error) {
    return parse_json(&row->parsed, row->json.data, row->json.bytes, error);
}

static int base64_digit(unsigned char byte) {
    if (byte >= 'A' && byte <= 'Z') return byte - 'A';
    if (byte >= 'a' && byte <= 'z') return byte - 'a' + 26;
    if (byte >= '0' && byte <= '9') return byte - '0' + 52;
    return byte == '+' ? 62 : byte == '/' ? 63 : -1;
}
unsigned char *base64_decode(const char *text, size_t text_bytes, size_t *bytes) {
    unsigned char *out = resize(NULL, text_bytes / 4 * 3 + 4, 1);
    size_t count = 0, digits = 0, padding = 0;
    uint32_t bits = 0;
    int is_good = 1;
    for (size_t i = 0; i < text_bytes && is_good; i++) {
        int digit = base64_digit((unsigned char)text[i]);
        if (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t') continue;
        if (text[i] == '=') padding++;
        else if (digit < 0 || padding) is_good = 0;
        else {
            bits = bits << 6 | (uint32_t)digit;
            if (++digits % 4) continue;
            out[count++] = (unsigned char)(bits >> 16);
            out[count++] = (unsigned char)(bits >> 8);
            out[count++] = (unsigned char)bits;
        }
    }
    if (digits % 4 == 2 && padding == 2) out[count++] = (unsigned char)(bits >> 4);
    else if (digits % 4 == 3 && padding == 1) {
        out[count++] = (unsigned char)(bits >> 10);
        out[count++] = (unsigned char)(bits >> 2);
    } else if (digits % 4 || padding || !digits) is_good = 0;
    *bytes = is_good ? count : 0;
    if (is_good) return out;
    free(out);
    return NULL;
}
