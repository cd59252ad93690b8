/* parquet.c: reads Parquet files, row by row. Each leaf of the schema has a cursor that decodes one page at a time into
 * (repetition level, definition level, value). A row is assembled from all cursors by walking the schema. */
#include "formats/parquet.h"

#include "base/json_stream.h"
#include "formats/parquet_footer.h"
#include "vlmprof_file.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum codec { CODEC_NONE, CODEC_SNAPPY, CODEC_GZIP, CODEC_LZO, CODEC_BROTLI, CODEC_LZ4, CODEC_ZSTD, CODEC_LZ4_RAW,
             CODEC_COUNT };
static const char *const CODECS[CODEC_COUNT] = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD",
                                                "LZ4_RAW"};
enum encoding { ENCODING_PLAIN = 0, ENCODING_PLAIN_DICTIONARY = 2, ENCODING_RLE = 3, ENCODING_RLE_DICTIONARY = 8,
                ENCODING_COUNT = 10 };
static const char *const ENCODINGS[ENCODING_COUNT] = {
    "PLAIN", "GROUP_VAR_INT", "PLAIN_DICTIONARY", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED",
    "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"};

/* Runs of equal values and bit-packed values: levels, dictionary indices, booleans. */
struct runs {
    const unsigned char *at, *end;
    uint32_t width, equal, packed, value; /* width in bits; number of values left of each kind */
    uint32_t bit;                         /* bit of the next packed value, from `at` */
};
struct bytes_at { const unsigned char *data; size_t bytes; };

struct cursor {
    struct buffer page, compressed, dictionary_page, values; /* values: struct bytes_at [dictionary_count] */
    uint32_t dictionary_count;
    int has_dictionary, is_indexed;     /* 1 if the page's values are indices into it */
    size_t group;                       /* SIZE_MAX if none is open */
    int64_t row;                        /* row of the next value, in the file */
    int64_t place, chunk_end;           /* position of the next page */
    int64_t values_left;                /* values left in the chunk, without this page */
    int32_t page_left;                  /* values left in the page */
    struct runs repetitions, definitions, indexes;
    const unsigned char *at, *end;      /* PLAIN values */
    uint32_t bit;                       /* BOOLEAN */
    int is_run_boolean;
    int has_next; uint32_t repetition, definition; /* levels of the next value, if has_next */
};

/* A column below the root. A damaged page makes the rest of its row group unreadable; its error is kept. */
struct column { uint32_t node; size_t bad_group; int64_t bad_row; vp_result bad; vp_error error; };

struct parquet {
    char *path;
    struct source source;
    int64_t bytes;
    struct parquet_footer footer;
    struct cursor *cursors;              /* [leaf_count] */
    struct column *columns; size_t column_count;
};

/* ---- decompression */
int snappy_decompress(const unsigned char *in, size_t in_bytes, unsigned char *out, size_t out_bytes) {
    const unsigned char *end = in + in_bytes;
    uint64_t total = 0;
    size_t count = 0;
    for (int shift = 0;; shift += 7) {
        if (in == end || shift > 28) return 0;
        total |= (uint64_t)(*in & 127) << shift;
        if (*in++ < 128) break;
    }
    if (total != out_bytes) return 0;
    while (in < end) {
        size_t length, distance = 0, more;
        const unsigned char tag = *in++;
        if ((tag & 3) == 0) {
            length = tag >> 2;
            more = length < 60 ? 0 : length - 59;
            if (more > (size_t)(end - in)) return 0;
            for (size_t i = 0; i < more; i++) length = (i ? length : 0) | (size_t)in[i] << 8 * i;
            in += more;
            length++;
            if (length > (size_t)(end - in) || length > out_bytes - count) return 0;
            memcpy(out + count, in, length);
            in += length;
        } else {
            more = (tag & 3) == 1 ? 1 : (tag & 3) == 2 ? 2 : 4;
            if (more > (size_t)(end - in)) return 0;
            for (size_t i = 0; i < more; i++) distance |= (size_t)in[i] << 8 * i;
            if (more == 1) distance |= (size_t)(tag >> 5) << 8;
            length = more == 1 ? (tag >> 2 & 7u) + 4u : (tag >> 2) + 1u;
            in += more;
            if (!distance || distance > count || length > out_bytes - count) return 0;
            for (size_t i = 0; i < length; i++) out[count + i] = out[count + i - distance];
        }
        count += length;
    }
    return count == out_bytes;
}
/* libzstd, opened when the first page needs it. Returns 1 if `out` is filled, 0 if damaged, -1 without the library. */
static int zstd_decompress(const unsigned char *in, size_t in_bytes, unsigned char *out, size_t out_bytes) {
    static size_t (*decompress)(void *, size_t, const void *, size_t);
    static int is_tried;
    if (!is_tried) {
        void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
        void *symbol = library ? dlsym(library, "ZSTD_decompress") : NULL;
        memcpy(&decompress, &symbol, sizeof decompress); /* ISO C has no cast from an object to a function pointer */
        is_tried = 1;
    }
    if (!decompress) return -1;
    return decompress(out, out_bytes, in, in_bytes) == out_bytes;
}

/* ---- errors */
/* The dotted name of a leaf. */
static void leaf_name(const struct parquet_footer *footer, int32_t leaf, char *out, size_t capacity) {
    uint32_t index = footer->leaves[leaf];
    size_t used = 0;
    out[0] = 0;
    for (uint32_t i = 1; i <= index && used < capacity; i++) {
        const struct schema_node *node = &footer->nodes[i];
        if (node->end > index)
            used += (size_t)snprintf(out + used, capacity - used, "%s%.60s", used ? "." : "", node->name);
    }
}
static vp_result bad_column(const struct parquet *file, int32_t leaf, vp_error *error, const char *what) {
    char name[200];
    leaf_name(&file->footer, leaf, name, sizeof name);
    return vp_failf(error, VP_ERR_FORMAT, file->cursors[leaf].place, file->path, "column \"%.120s\": %s", name, what);
}
/* Reports something unsupported, with the command that makes the file readable. */
static vp_result not_read(const struct parquet *file, int32_t leaf, vp_error *error, const char *kind,
                          const char *what) {
    char name[200];
    leaf_name(&file->footer, leaf, name, sizeof name);
    return vp_failf(
        error, VP_ERR_UNSUPPORTED, -1, file->path,
        "column \"%.80s\" has the %s %s, which is not supported. Rewrite the file with Python: python3 -c \"import "
        "pyarrow.parquet as q,sys; "
        "q.write_table(q.read_table(sys.argv[1]), sys.argv[2], compression='snappy')\" IN OUT",
        name, kind, what);
}

/* ---- levels and indices */
static void runs_open(struct runs *runs, const unsigned char *at, const unsigned char *end, uint32_t width) {
    memset(runs, 0, sizeof *runs);
    runs->at = at;
    runs->end = end;
    runs->width = width;
}
/* Reads the head of the next run. Returns 0 at the end of the data. */
static int runs_head(struct runs *runs) {
    uint64_t head = 0;
    uint32_t value_bytes = (runs->width + 7) / 8;
    if (runs->bit) runs->at += (runs->bit + 7) / 8;
    runs->bit = 0;
    for (int shift = 0;; shift += 7) {
        if (runs->at >= runs->end || shift > 28) return 0;
        head |= (uint64_t)(*runs->at & 127) << shift;
        if (*runs->at++ < 128) break;
    }
    if (head >> 1 > INT32_MAX) return 0;
    if (head & 1) {
        uint64_t most = runs->width ? (uint64_t)(runs->end - runs->at) * 8 / runs->width : INT32_MAX;
        uint64_t count = (head >> 1) * 8;
        runs->packed = (uint32_t)(count < most ? count : most); /* the last group may be truncated */
        return runs->packed > 0;
    }
    if (value_bytes > (size_t)(runs->end - runs->at) || !(head >> 1)) return 0;
    runs->value = 0;
    for (uint32_t i = 0; i < value_bytes; i++) runs->value |= (uint32_t)runs->at[i] << 8 * i;
    runs->at += value_bytes;
    runs->equal = (uint32_t)(head >> 1);
    return 1;
}
static int runs_next(struct runs *runs, uint32_t *value) {
    uint64_t bits = 0;
    if (!runs->equal && !runs->packed && !runs_head(runs)) return 0;
    if (runs->equal) {
        runs->equal--;
        *value = runs->value;
        return 1;
    }
    for (uint32_t i = 0; i < (runs->bit % 8 + runs->width + 7) / 8; i++)
        bits |= (uint64_t)runs->at[runs->bit / 8 + i] << 8 * i;
    *value = (uint32_t)(bits >> runs->bit % 8 & (((uint64_t)1 << runs->width) - 1));
    runs->bit += runs->width;
    runs->packed--;
    if (runs->bit >= 1u << 24 && runs->bit % 8 == 0) { /* bit is 32 bits wide */
        runs->at += runs->bit / 8;
        runs->bit = 0;
    }
    return 1;
}
static uint32_t width_of(int32_t most) {
    uint32_t width = 0;
    while (most >> width) width++;
    return width;
}

/* ---- pages */
static const struct column_chunk *chunk_of(const struct parquet *file, size_t group, int32_t leaf) {
    return &file->footer.chunks[group * (size_t)file->footer.leaf_count + (size_t)leaf];
}
/* Reads the header of the page at cursor->place. */
static vp_result read_header(struct parquet *file, int32_t leaf, struct page_header *header, vp_error *error) {
    struct cursor *cursor = &file->cursors[leaf];
    int64_t left = cursor->chunk_end - cursor->place;
    size_t want = 1024;
    for (;; want *= 16) {
        size_t bytes = (int64_t)want < left ? want : (size_t)(left > 0 ? left : 0);
        unsigned char *data = reserve(&cursor->compressed, bytes + 1, 1);
        ssize_t got = source_read(&file->source, cursor->place, (char *)data, bytes);
        if (got < 0) return vp_fail(error, VP_ERR_READ, cursor->place, file->path, "cannot be read");
        if (page_header_read(header, data, (size_t)got)) break;
        if ((int64_t)want >= left || want > 16 << 20) return bad_column(file, leaf, error, "a page header is damaged");
    }
    cursor->place += (int64_t)header->header_bytes;
    if (header->compressed_bytes > cursor->chunk_end - cursor->place)
        return bad_column(file, leaf, error, "a page is longer than its column chunk");
    return header->uncompressed_bytes <= PARQUET_PAGE_BYTES_MAX
               ? VP_OK
               : bad_column(file, leaf, error, "a page is larger than 1 GiB");
}
/* Decompresses in_bytes at `in`, or copies them. */
static vp_result decompress(struct parquet *file, int32_t leaf, int codec, const unsigned char *in, size_t in_bytes,
                            unsigned char *out, size_t out_bytes, vp_error *error) {
    int good = 0;
    if (codec == CODEC_NONE) {
        good = in_bytes == out_bytes;
        if (good && in_bytes) memcpy(out, in, in_bytes);
    } else if (codec == CODEC_SNAPPY) good = snappy_decompress(in, in_bytes, out, out_bytes);
    else if (codec == CODEC_ZSTD) good = zstd_decompress(in, in_bytes, out, out_bytes);
    if (good < 0) return not_read(file, leaf, error, "codec", "ZSTD (libzstd.so.1 is not installed)");
    return good ? VP_OK : bad_column(file, leaf, error, "a page does not decompress to the size that it claims");
}
/* Reads the page after its header into `page`. Levels of v2 pages are never compressed. */
static vp_result read_page(struct parquet *file, int32_t leaf, const struct page_header *header, struct buffer *page,
                           vp_error *error) {
    struct cursor *cursor = &file->cursors[leaf];
    const int codec = chunk_of(file, cursor->group, leaf)->codec;
    size_t in_bytes = (size_t)header->compressed_bytes, out_bytes = (size_t)header->uncompressed_bytes, levels = 0;
    unsigned char *in, *out;
    ssize_t got;
    if (header->type == PAGE_DATA_V2) {
        if (header->definition_bytes < 0 || header->repetition_bytes < 0)
            return bad_column(file, leaf, error, "negative size");
        levels = (size_t)header->definition_bytes + (size_t)header->repetition_bytes;
        if (levels > in_bytes || levels > out_bytes)
            return bad_column(file, leaf, error, "levels are longer than their page");
    }
    /* Snappy expands 3 bytes to at most 64 */
    if (codec == CODEC_SNAPPY && out_bytes > in_bytes * 22 + 64)
        return bad_column(file, leaf, error, "a page claims to be larger than Snappy allows");
    in = reserve(&cursor->compressed, in_bytes + 1, 1);
    got = source_read(&file->source, cursor->place, (char *)in, in_bytes);
    if (got != (ssize_t)in_bytes) return bad_column(file, leaf, error, "a page is cut");
    out = reserve(page, out_bytes + 8, 1);
    if (levels) memcpy(out, in, levels);
    cursor->place += header->compressed_bytes;
    if (header->type == PAGE_DATA_V2 && in_bytes == levels && out_bytes == levels) return VP_OK;
    return decompress(file, leaf, header->is_compressed ? codec : CODEC_NONE, in + levels, in_bytes - levels,
                      out + levels, out_bytes - levels, error);
}
/* Reads a PLAIN value at *at. Returns 0 at the end of the data. */
static int plain_value(const struct schema_node *node, const unsigned char **at, const unsigned char *end,
                       struct bytes_at *value) {
    size_t left = (size_t)(end - *at), bytes = node->type == TYPE_FIXED ? (size_t)node->type_length : 8;
    if (node->type == TYPE_INT32 || node->type == TYPE_FLOAT) bytes = 4;
    if (node->type == TYPE_BYTE_ARRAY) {
        if (left < 4) return 0;
        bytes = (size_t)(*at)[0] | (size_t)(*at)[1] << 8 | (size_t)(*at)[2] << 16 | (size_t)(*at)[3] << 24;
        *at += 4;
        left -= 4;
    }
    if (bytes > left) return 0;
    value->data = *at;
    value->bytes = bytes;
    *at += bytes;
    return 1;
}
static vp_result read_dictionary(struct parquet *file, int32_t leaf, const struct page_header *header,
                                 vp_error *error) {
    struct cursor *cursor = &file->cursors[leaf];
    const struct schema_node *node = &file->footer.nodes[file->footer.leaves[leaf]];
    const unsigned char *at, *end;
    struct bytes_at *values;
    vp_result result;
    if (header->encoding != ENCODING_PLAIN && header->encoding != ENCODING_PLAIN_DICTIONARY)
        return not_read(file, leaf, error, "encoding of the dictionary",
                        header->encoding >= 0 && header->encoding < ENCODING_COUNT ? ENCODINGS[header->encoding] : "?");
    if ((result = read_page(file, leaf, header, &cursor->dictionary_page, error)) != VP_OK) return result;
    at = cursor->dictionary_page.data;
    end = at + header->uncompressed_bytes;
    /* a value has at least a byte, except texts of a FIXED length */
    if (header->value_count < 0 || header->value_count > header->uncompressed_bytes || node->type == TYPE_BOOLEAN)
        return bad_column(file, leaf, error, "the dictionary claims too many values");
    values = reserve(&cursor->values, (size_t)header->value_count + 1, sizeof *values);
    for (int32_t i = 0; i < header->value_count; i++)
        if (!plain_value(node, &at, end, &values[i])) return bad_column(file, leaf, error, "the dictionary is cut");
    cursor->dictionary_count = (uint32_t)header->value_count;
    cursor->has_dictionary = 1;
    return VP_OK;
}
/* The end of v1's levels, whose length is in the first 4 bytes. Returns NULL if they do not fit. */
static const unsigned char *open_levels(struct runs *runs, const unsigned char *at, const unsigned char *end,
                                        int32_t most) {
    size_t bytes;
    if (!most) return at;
    if (end - at < 4) return NULL;
    bytes = (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
    at += 4;
    if (bytes > (size_t)(end - at)) return NULL;
    runs_open(runs, at, at + bytes, width_of(most));
    return at + bytes;
}
/* Makes the decoders of the data page in cursor->page. */
static vp_result open_page(struct parquet *file, int32_t leaf, const struct page_header *header, vp_error *error) {
    struct cursor *cursor = &file->cursors[leaf];
    const struct schema_node *node = &file->footer.nodes[file->footer.leaves[leaf]];
    const unsigned char *at = cursor->page.data, *end = at + header->uncompressed_bytes;
    const int is_v2 = header->type == PAGE_DATA_V2;
    const char *name = header->encoding >= 0 && header->encoding < ENCODING_COUNT ? ENCODINGS[header->encoding] : "?";
    if (is_v2) {
        runs_open(&cursor->repetitions, at, at + header->repetition_bytes, width_of(node->repeats));
        at += header->repetition_bytes;
        runs_open(&cursor->definitions, at, at + header->definition_bytes, width_of(node->definition));
        at += header->definition_bytes;
    } else {
        if ((node->repeats && header->repetition_encoding != ENCODING_RLE)
            || (node->definition && header->definition_encoding != ENCODING_RLE))
            return not_read(file, leaf, error, "encoding of levels", "BIT_PACKED");
        at = open_levels(&cursor->repetitions, at, end, node->repeats);
        if (at) at = open_levels(&cursor->definitions, at, end, node->definition);
        if (!at) return bad_column(file, leaf, error, "levels are longer than their page");
    }
    cursor->is_indexed = cursor->is_run_boolean = 0;
    cursor->bit = 0;
    cursor->at = at;
    cursor->end = end;
    if (header->encoding == ENCODING_RLE_DICTIONARY || header->encoding == ENCODING_PLAIN_DICTIONARY) {
        if (!cursor->has_dictionary)
            return bad_column(file, leaf, error, "a page needs a dictionary that is missing");
        cursor->is_indexed = 1;
        if (at == end) runs_open(&cursor->indexes, at, end, 0); /* there is no value */
        else if (*at > 32) return bad_column(file, leaf, error, "dictionary indices have more than 32 bits");
        else runs_open(&cursor->indexes, at + 1, end, *at);
    } else if (header->encoding == ENCODING_RLE && node->type == TYPE_BOOLEAN) {
        cursor->is_run_boolean = 1;
        if (!open_levels(&cursor->indexes, at, end, 1)) return bad_column(file, leaf, error, "a page is cut");
    } else if (header->encoding != ENCODING_PLAIN) return not_read(file, leaf, error, "encoding", name);
    return VP_OK;
}
/* The properties of a chunk that are known before its pages are read. */
static vp_result check_chunk(struct parquet *file, int32_t leaf, vp_error *error) {
    const struct column_chunk *chunk = chunk_of(file, file->cursors[leaf].group, leaf);
    const struct schema_node *node = &file->footer.nodes[file->footer.leaves[leaf]];
    if (chunk->is_encrypted) return not_read(file, leaf, error, "protection", "encryption");
    if (chunk->is_elsewhere) return not_read(file, leaf, error, "place", "in another file");
    if (chunk->codec != CODEC_NONE && chunk->codec != CODEC_SNAPPY && chunk->codec != CODEC_ZSTD)
        return not_read(file, leaf, error, "codec",
                        chunk->codec > 0 && chunk->codec < CODEC_COUNT ? CODECS[chunk->codec] : "?");
    if (node->type == TYPE_INT96) return not_read(file, leaf, error, "type", "INT96");
    if (node->kind == KIND_DECIMAL) return not_read(file, leaf, error, "type", "DECIMAL");
    return VP_OK;
}
/* Moves to the next data page. Pages of a flat column that end before row `skip_to` are skipped unread. */
static vp_result next_page(struct parquet *file, int32_t leaf, int64_t skip_to, vp_error *error) {
    struct cursor *cursor = &file->cursors[leaf];
    const struct schema_node *node = &file->footer.nodes[file->footer.leaves[leaf]];
    struct page_header header;
    vp_result result;
    for (;;) {
        if (cursor->place >= cursor->chunk_end)
            return bad_column(file, leaf, error, "its pages end before its values do");
        if ((result = read_header(file, leaf, &header, error)) != VP_OK) return result;
        if (header.type == PAGE_DICTIONARY) {
            if (cursor->has_dictionary) return bad_column(file, leaf, error, "it has two dictionaries");
            if ((result = read_dictionary(file, leaf, &header, error)) != VP_OK) return result;
            continue;
        }
        if (header.type != PAGE_DATA && header.type != PAGE_DATA_V2) {
            cursor->place += header.compressed_bytes;
            continue;
        }
        if (header.value_count < 0 || header.value_count > cursor->values_left)
            return bad_column(file, leaf, error, "a page claims more values than its column chunk");
        cursor->values_left -= header.value_count;
        if (!node->repeats && cursor->row + header.value_count <= skip_to) {
            cursor->row += header.value_count;
            cursor->place += header.compressed_bytes;
            if (!cursor->values_left) return VP_OK;
            continue;
        }
        if ((result = read_page(file, leaf, &header, &cursor->page, error)) != VP_OK
            || (result = open_page(file, leaf, &header, error)) != VP_OK)
            return result;
        cursor->page_left = header.value_count;
        if (cursor->page_left) return VP_OK;
    }
}

/* ---- cursors */
/* Reads the levels of the next value, unless they are known. At the end of the chunk, has_next stays 0. */
static vp_result peek(struct parquet *file, int32_t leaf, int64_t skip_to, vp_error *error) {
    struct cursor *cursor = &file->cursors[leaf];
    const struct schema_node *node = &file->footer.nodes[file->footer.leaves[leaf]];
    vp_result result;
    if (cursor->has_next) return VP_OK;
    while (!cursor->page_left) {
        if (!cursor->values_left) return VP_OK;
        if ((result = next_page(file, leaf, skip_to, error)) != VP_OK) return result;
    }
    cursor->repetition = 0;
    cursor->definition = (uint32_t)node->definition;
    if ((node->repeats && !runs_next(&cursor->repetitions, &cursor->repetition))
        || (node->definition && !runs_next(&cursor->definitions, &cursor->definition)))
        return bad_column(file, leaf, error, "its levels end before its values do");
    if (cursor->repetition > (uint32_t)node->repeats || cursor->definition > (uint32_t)node->definition)
        return bad_column(file, leaf, error, "a level is too large");
    cursor->page_left--;
    cursor->has_next = 1;
    return VP_OK;
}
/* Takes the value whose levels were read ahead. value->data is NULL if it is absent (its level is lower). A boolean is
 * one byte. */
static vp_result take(struct parquet *file, int32_t leaf, struct bytes_at *value, vp_error *error) {
    static const unsigned char booleans[2] = {0, 1};
    struct cursor *cursor = &file->cursors[leaf];
    const struct schema_node *node = &file->footer.nodes[file->footer.leaves[leaf]];
    uint32_t index = 0;
    cursor->has_next = 0;
    value->data = NULL;
    value->bytes = 0;
    if (cursor->definition < (uint32_t)node->definition) return VP_OK;
    if (cursor->is_indexed) {
        if (!runs_next(&cursor->indexes, &index) || index >= cursor->dictionary_count)
            return bad_column(file, leaf, error, "a dictionary index is out of range");
        *value = ((const struct bytes_at *)cursor->values.data)[index];
        return VP_OK;
    }
    if (node->type == TYPE_BOOLEAN) {
        if (cursor->is_run_boolean) {
            if (!runs_next(&cursor->indexes, &index)) return bad_column(file, leaf, error, "a page is cut");
        } else {
            if (cursor->at + cursor->bit / 8 >= cursor->end) return bad_column(file, leaf, error, "a page is cut");
            index = cursor->at[cursor->bit / 8] >> cursor->bit % 8 & 1u;
            cursor->bit++;
        }
        value->data = &booleans[index & 1];
        value->bytes = 1;
        return VP_OK;
    }
    if (!plain_value(node, &cursor->at, cursor->end, value))
        return bad_column(file, leaf, error, "a value is longer than its page");
    return VP_OK;
}
/* Moves to the start of a row group. */
static vp_result open_group(struct parquet *file, int32_t leaf, size_t group, int64_t first_row, vp_error *error) {
    struct cursor *cursor = &file->cursors[leaf];
    const struct column_chunk *chunk = chunk_of(file, group, leaf);
    vp_result result;
    cursor->group = group;
    if ((result = check_chunk(file, leaf, error)) != VP_OK) {
        cursor->group = SIZE_MAX;
        return result;
    }
    cursor->row = first_row;
    cursor->place = chunk->start;
    cursor->chunk_end = chunk->start + chunk->bytes;
    cursor->values_left = chunk->value_count;
    cursor->page_left = 0;
    cursor->has_next = cursor->has_dictionary = 0;
    return VP_OK;
}
/* Moves to a row of the group that begins at first_row. */
static vp_result seek_row(struct parquet *file, int32_t leaf, size_t group, int64_t first_row, int64_t index,
                          vp_error *error) {
    struct cursor *cursor = &file->cursors[leaf];
    const int is_list = file->footer.nodes[file->footer.leaves[leaf]].repeats > 0;
    struct bytes_at value;
    vp_result result = VP_OK;
    if (cursor->group != group || cursor->row > index) result = open_group(file, leaf, group, first_row, error);
    while (result == VP_OK) {
        if ((result = peek(file, leaf, index, error)) != VP_OK) break;
        if (!cursor->has_next) return bad_column(file, leaf, error, "its rows end before those of its row group");
        if (cursor->row == index) {
            if (!cursor->repetition) return VP_OK;
            result = bad_column(file, leaf, error, "a row begins in the middle of a list");
            break;
        }
        do {
            if ((result = take(file, leaf, &value, error)) != VP_OK || !is_list) break;
            result = peek(file, leaf, 0, error);
        } while (result == VP_OK && cursor->has_next && cursor->repetition);
        cursor->row++;
    }
    return result;
}

/* ---- records */
struct assembly { struct parquet *file; struct row *row; vp_json_writer writer; vp_error *error; size_t value_bytes; };

/* Takes one value of each leaf of an empty subtree. */
static vp_result take_nothing(struct assembly *in, uint32_t index) {
    const struct parquet_footer *footer = &in->file->footer;
    struct bytes_at value;
    vp_result result = VP_OK;
    for (int32_t leaf = footer->nodes[index].leaf; leaf < footer->leaf_count && result == VP_OK; leaf++) {
        if (footer->leaves[leaf] >= footer->nodes[index].end) break;
        if ((result = peek(in->file, leaf, 0, in->error)) != VP_OK) break;
        if (!in->file->cursors[leaf].has_next) return bad_column(in->file, leaf, in->error, "its values end too early");
        result = take(in->file, leaf, &value, in->error);
    }
    return result;
}
static uint64_t little_endian(const struct bytes_at *value) {
    uint64_t number = 0;
    for (size_t i = 0; i < value->bytes && i < 8; i++) number |= (uint64_t)value->data[i] << 8 * i;
    return number;
}
static void put_value(struct assembly *in, const struct schema_node *node, const struct bytes_at *value) {
    const uint64_t bits = value->data ? little_endian(value) : 0;
    const int32_t width = node->type == TYPE_INT32 || node->type == TYPE_FLOAT ? 4 : 8;
    if (!value->data) vp_json_null(&in->writer);
    else if (node->type == TYPE_BOOLEAN) vp_json_bool(&in->writer, (int)bits);
    else if (node->type == TYPE_INT32 || node->type == TYPE_INT64)
        row_put_int(&in->writer, bits, width, node->kind == KIND_UNSIGNED);
    else if (node->type == TYPE_FLOAT || node->type == TYPE_DOUBLE) row_put_float(&in->writer, bits, width);
    else row_put_bytes(in->row, &in->writer, value->data, value->bytes);
}
static vp_result put_node(struct assembly *in, uint32_t index, int is_element);

/* Writes the members of a group as an object. */
static vp_result put_members(struct assembly *in, uint32_t index) {
    const struct schema_node *nodes = in->file->footer.nodes;
    vp_result result = VP_OK;
    vp_json_begin_object(&in->writer);
    for (uint32_t child = index + 1; child < nodes[index].end && result == VP_OK; child = nodes[child].end) {
        vp_json_key(&in->writer, nodes[child].name);
        result = put_node(in, child, 0);
    }
    vp_json_end_object(&in->writer);
    return result;
}
/* Writes the contents of a repeated node, element by element. `element` is the node of the element. */
static vp_result put_elements(struct assembly *in, uint32_t index, uint32_t element) {
    const struct schema_node *node = &in->file->footer.nodes[index];
    struct cursor *cursor = &in->file->cursors[node->leaf];
    vp_result result = peek(in->file, node->leaf, 0, in->error);
    vp_json_begin_array(&in->writer);
    if (result == VP_OK && cursor->has_next && cursor->definition < (uint32_t)node->definition)
        result = take_nothing(in, index);
    else while (result == VP_OK) {
        result = put_node(in, element, element == index);
        if (result == VP_OK) result = peek(in->file, node->leaf, 0, in->error);
        if (!cursor->has_next || cursor->repetition != (uint32_t)node->repeats) break;
    }
    vp_json_end_array(&in->writer);
    return result;
}
/* Writes the value of a node. is_element: its repetition has been handled. */
static vp_result put_node(struct assembly *in, uint32_t index, int is_element) {
    const struct schema_node *nodes = in->file->footer.nodes, *node = &nodes[index];
    struct cursor *cursor = &in->file->cursors[node->leaf];
    struct bytes_at value;
    vp_result result;
    if (node->repetition == REPEATED && !is_element) return put_elements(in, index, index);
    if ((result = peek(in->file, node->leaf, 0, in->error)) != VP_OK) return result;
    if (!cursor->has_next) return bad_column(in->file, node->leaf, in->error, "its values end too early");
    if (node->type != TYPE_GROUP) {
        if ((result = take(in->file, node->leaf, &value, in->error)) != VP_OK) return result;
        in->value_bytes += value.bytes + 8;
        if (in->value_bytes > ROW_BYTES_MAX)
            return bad_column(in->file, node->leaf, in->error, "a row is larger than 1 GiB");
        put_value(in, node, &value);
        return VP_OK;
    }
    if (node->repetition == OPTIONAL && cursor->definition < (uint32_t)node->definition) {
        vp_json_null(&in->writer);
        return take_nothing(in, index);
    }
    if (node->kind == KIND_LIST && node->child_count == 1 && nodes[index + 1].repetition == REPEATED) {
        /* three levels: the repeated group has one child, the element; two levels: it is the element itself */
        int is_wrapped = nodes[index + 1].type == TYPE_GROUP && nodes[index + 1].child_count == 1;
        return put_elements(in, index + 1, index + 1 + (uint32_t)is_wrapped);
    }
    return put_members(in, index);
}

/* Writes the value of one column. After a failure, its cursors find their position again. */
static vp_result put_column(struct assembly *in, struct column *column, size_t group, int64_t first, int64_t index) {
    struct parquet *file = in->file;
    const struct schema_node *node = &file->footer.nodes[column->node];
    const int32_t end =
        node->end < file->footer.node_count ? file->footer.nodes[node->end].leaf : file->footer.leaf_count;
    vp_error error = {VP_OK, -1, "", ""}, *told = in->error;
    vp_result result = column->bad;
    if (result == VP_OK || column->bad_group != group || index < column->bad_row) {
        result = VP_OK;
        in->error = &error;
        for (int32_t leaf = node->leaf; leaf < end && result == VP_OK; leaf++)
            result = seek_row(file, leaf, group, first, index, &error);
        if (result == VP_OK) result = put_node(in, column->node, 0);
        in->error = told;
        for (int32_t leaf = node->leaf; leaf < end; leaf++) {
            if (result == VP_OK) file->cursors[leaf].row++;
            else file->cursors[leaf].group = SIZE_MAX;
        }
        column->bad = result;
        column->bad_group = group;
        column->bad_row = index;
        column->error = error;
    }
    if (result != VP_OK && told) *told = column->error;
    return result;
}
vp_result parquet_row(struct parquet *file, int64_t index, struct row *row, vp_error *error) {
    const struct parquet_footer *footer = &file->footer;
    struct assembly in = {file, row, {0}, error, 0};
    size_t group = 0;
    int64_t first = 0;
    vp_result result = VP_OK;
    while (group < footer->group_count && index >= first + footer->group_rows[group])
        first += footer->group_rows[group++];
    if (index < 0 || group >= footer->group_count)
        return vp_fail(error, VP_ERR_RANGE, index, file->path, "no such row");
    vp_json_writer_init_sink(&in.writer, text_sink, &row->json, 0);
    vp_json_begin_object(&in.writer);
    for (size_t i = 0; i < file->column_count && result == VP_OK; i++) {
        vp_json_key(&in.writer, footer->nodes[file->columns[i].node].name);
        result = put_column(&in, &file->columns[i], group, first, index);
    }
    vp_json_end_object(&in.writer);
    if (result == VP_OK && (result = vp_json_finish(&in.writer)) != VP_OK)
        vp_fail(error, result, -1, file->path, "a name in this parquet file is not UTF-8");
    return result;
}

/* ---- files */
static int64_t source_bytes(const struct source *source) {
    struct stat info;
    if (source->fd < 0) return (int64_t)source->memory_bytes;
    return fstat(source->fd, &info) ? 0 : (int64_t)info.st_size;
}
vp_result parquet_open(struct parquet **out, const char *path, vp_error *error) {
    struct parquet *file = zeroed(1, sizeof *file);
    struct text_buffer text = {NULL, 0, 0};
    unsigned char tail[8] = {0};
    int64_t footer_bytes = 0;
    *out = NULL;
    file->path = copy_text(path, strlen(path));
    vp_result result = source_open(&file->source, path, error);
    if (result == VP_OK && (file->bytes = source_bytes(&file->source)) < 12)
        result = vp_fail(error, VP_ERR_FORMAT, -1, path, "a parquet file has at least 12 bytes");
    if (result == VP_OK && source_read(&file->source, file->bytes - 8, (char *)tail, 8) != 8)
        result = vp_fail(error, VP_ERR_READ, file->bytes - 8, path, "cannot be read");
    if (result == VP_OK && memcmp(tail + 4, "PAR1", 4))
        result = vp_fail(error, memcmp(tail + 4, "PARE", 4) ? VP_ERR_FORMAT : VP_ERR_UNSUPPORTED, file->bytes - 4, path,
                         memcmp(tail + 4, "PARE", 4) ? "this parquet file is truncated: \"PAR1\" is missing at its end"
                                                     : "this parquet file is encrypted");
    footer_bytes = (int64_t)((uint32_t)tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16
                             | (uint32_t)tail[3] << 24);
    if (result == VP_OK && (footer_bytes > file->bytes - 12 || footer_bytes > PARQUET_FOOTER_BYTES_MAX))
        result = vp_fail(error, VP_ERR_FORMAT, file->bytes - 8, path,
                         footer_bytes > file->bytes - 12
                             ? "the footer of this parquet file claims to be longer than the file"
                             : "the footer of this parquet file is larger than 64 MiB");
    if (result == VP_OK)
        result = source_text(&file->source, file->bytes - 8 - footer_bytes, footer_bytes, &text, error);
    if (result == VP_OK)
        result = parquet_footer_read(&file->footer, (const unsigned char *)(text.data ? text.data : ""), text.bytes,
                                     file->bytes, error);
    free(text.data);
    if (result != VP_OK) {
        if (error && !error->where[0])
            snprintf(error->where, sizeof error->where, "%.*s", (int)sizeof error->where - 1, path);
        parquet_close(file);
        return result;
    }
    file->cursors = zeroed((size_t)file->footer.leaf_count + 1, sizeof *file->cursors);
    for (int32_t leaf = 0; leaf < file->footer.leaf_count; leaf++) file->cursors[leaf].group = SIZE_MAX;
    for (uint32_t node = 1; node < file->footer.node_count; node = file->footer.nodes[node].end) file->column_count++;
    file->columns = zeroed(file->column_count + 1, sizeof *file->columns);
    for (uint32_t node = 1, i = 0; node < file->footer.node_count; node = file->footer.nodes[node].end, i++)
        file->columns[i].node = node;
    *out = file;
    return VP_OK;
}
void parquet_close(struct parquet *file) {
    if (!file) return;
    for (int32_t leaf = 0; file->cursors && leaf < file->footer.leaf_count; leaf++) {
        FREE_ALL(file->cursors[leaf].page.data, file->cursors[leaf].compressed.data,
                 file->cursors[leaf].dictionary_page.data, file->cursors[leaf].values.data);
    }
    FREE_ALL(file->cursors, file->columns);
    parquet_footer_free(&file->footer);
    source_close(&file->source);
    FREE_ALL(file->path, file);
}
int64_t parquet_row_count(const struct parquet *file) { return file->footer.row_count; }
size_t parquet_column_count(const struct parquet *file) { return file->column_count; }
const char *parquet_column_name(const struct parquet *file, size_t column) {
    return file->footer.nodes[file->columns[column].node].name;
}
