/* npy.c: reads NumPy's files. */
#include "conform/npy.h"

#include "base/memory.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_MAX = 65536 };
static const size_t FILE_MAX = (size_t)1 << 33; /* bytes */

void npy_free(struct npy *npy) {
    FREE_ALL(npy->whole, npy->real);
    memset(npy, 0, sizeof *npy);
}

/* The value of 'key' in the header's dictionary: the text after the colon; NULL if there is none. */
static const char *header_value(const char *header, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", key);
    const char *at = strstr(header, quoted);
    if (!at) return NULL;
    at += strlen(quoted);
    while (*at == ' ' || *at == ':') at++;
    return at;
}
/* "(3, 4)" -> the shape, and the product of its dimensions. Returns 0 for anything else. */
static int read_shape(const char *at, size_t most, struct npy *npy) {
    npy->count = 1;
    if (!at || *at++ != '(') return 0;
    while (*at == ' ') at++;
    while (*at != ')') {
        char *end;
        if (*at < '0' || *at > '9' || npy->dimensions == NPY_DIMENSIONS_MAX) return 0;
        const unsigned long long side = strtoull(at, &end, 10);
        if (side > most || (side && npy->count > most / side)) return 0;
        npy->shape[npy->dimensions++] = (int64_t)side;
        npy->count *= (size_t)side;
        for (at = end; *at == ' ' || *at == ','; at++) {}
    }
    return 1;
}
static double real_at(const unsigned char *at, size_t bytes) {
    uint16_t half;
    float single;
    double value;
    if (bytes == 2) { memcpy(&half, at, 2); return (double)vp_f16_to_f32(half); }
    if (bytes == 4) { memcpy(&single, at, 4); return (double)single; }
    memcpy(&value, at, 8);
    return value;
}
static int64_t whole_at(const unsigned char *at, size_t bytes, int is_signed) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)at[i] << 8 * i;
    if (is_signed && bytes < 8 && value >> (8 * bytes - 1)) value |= ~(uint64_t)0 << 8 * bytes;
    return (int64_t)value;
}
static vp_result read_values(const unsigned char *data, char kind, size_t bytes, const char *path, struct npy *npy,
                             vp_error *error) {
    if (kind == 'f') npy->real = resize(NULL, npy->count + 1, sizeof *npy->real);
    else npy->whole = resize(NULL, npy->count + 1, sizeof *npy->whole);
    for (size_t i = 0; i < npy->count; i++)
        if (kind == 'f') {
            npy->real[i] = (float)real_at(data + i * bytes, bytes);
            if (!isfinite(npy->real[i]))
                return vp_failf(error, VP_ERR_FORMAT, (int64_t)i, path, "value %zu is not a finite number", i);
        } else {
            const int64_t value = whole_at(data + i * bytes, bytes, kind == 'i');
            if (value < INT32_MIN || value > INT32_MAX)
                return vp_failf(error, VP_ERR_FORMAT, (int64_t)i, path,
                                "value %zu is %" PRId64 "; expected at most 2^31 - 1", i, value);
            npy->whole[i] = (int32_t)value;
        }
    return VP_OK;
}
static vp_result parse_npy(const char *text, size_t bytes, const char *path, struct npy *npy, vp_error *error) {
    char header[HEADER_MAX + 1];
    const unsigned char *data = (const unsigned char *)text;
    size_t start = 10, length, item;
    if (bytes < 12 || memcmp(text, "\x93NUMPY", 6) || data[6] < 1 || data[6] > 3)
        return vp_failf(error, VP_ERR_FORMAT, 0, path, "expected a .npy file; write it with numpy.save");
    length = data[8] | (size_t)data[9] << 8;
    if (data[6] > 1) {
        length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
        start = 12;
    }
    if (length > HEADER_MAX || length > bytes - start)
        return vp_failf(error, VP_ERR_FORMAT, 8, path, "the header of %zu bytes is truncated", length);
    memcpy(header, text + start, length);
    header[length] = 0;
    const char *type = header_value(header, "descr");
    const char *order = header_value(header, "fortran_order");
    if (!type || type[0] != '\'' || !strchr("<|", type[1]) || !strchr("fiu", type[2]) || !strchr("1248", type[3])
        || type[4] != '\'' || (type[2] == 'f' && type[3] == '1'))
        return vp_failf(error, VP_ERR_FORMAT, (int64_t)start, path,
                        "the type is %.12s; expected float16, float32, float64 or an integer, little-endian (bfloat16: "
                        "convert with .float())", type ? type : "missing");
    if (!order || strncmp(order, "False", 5))
        return vp_failf(error, VP_ERR_FORMAT, (int64_t)start, path,
                        "the array is in Fortran order; save it with numpy.ascontiguousarray");
    item = (size_t)(type[3] - '0');
    if (!read_shape(header_value(header, "shape"), FILE_MAX / item, npy))
        return vp_failf(error, VP_ERR_FORMAT, (int64_t)start, path, "the shape is damaged, or has more than %d "
                                                                    "dimensions",
                        NPY_DIMENSIONS_MAX);
    if (npy->count * item != bytes - start - length)
        return vp_failf(error, VP_ERR_FORMAT, (int64_t)(start + length), path,
                        "the shape needs %zu bytes of data, but the file has %zu", npy->count * item,
                        bytes - start - length);
    return read_values(data + start + length, type[2], item, path, npy, error);
}

vp_result npy_read(const char *path, struct npy *npy, vp_error *error) {
    char *text = NULL;
    size_t bytes = 0;
    vp_result result = vp_file_read(path, FILE_MAX, &text, &bytes, error);
    memset(npy, 0, sizeof *npy);
    if (result == VP_OK) result = parse_npy(text, bytes, path, npy, error);
    if (result != VP_OK) npy_free(npy);
    free(text);
    return result;
}
