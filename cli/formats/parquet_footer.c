/* parquet_footer.c: the metadata of a Parquet file, from Thrift's compact protocol. */
#include "formats/parquet_footer.h"

#include <stdlib.h>
#include <string.h>

/* ---- Thrift. After an error a reader stays `bad` and returns 0 for everything. */
struct thrift { const unsigned char *at, *end; int bad; };
enum { THRIFT_STOP, THRIFT_TRUE, THRIFT_FALSE, THRIFT_BYTE, THRIFT_I16, THRIFT_I32, THRIFT_I64, THRIFT_DOUBLE,
       THRIFT_BINARY, THRIFT_LIST, THRIFT_SET, THRIFT_MAP, THRIFT_STRUCT, THRIFT_DEPTH_MAX = 32 };
enum { SCHEMA_NODES_MAX = 100000 };

static uint64_t thrift_varint(struct thrift *in) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        unsigned char byte = *in->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
    in->bad = 1;
    return 0;
}
static int64_t thrift_int(struct thrift *in) {
    uint64_t value = thrift_varint(in);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}
static int32_t thrift_int32(struct thrift *in) {
    int64_t value = thrift_int(in);
    if (value < INT32_MIN || value > INT32_MAX) in->bad = 1;
    return in->bad ? 0 : (int32_t)value;
}
static const unsigned char *thrift_bytes(struct thrift *in, uint64_t count) {
    const unsigned char *start = in->at;
    if (in->bad || count > (uint64_t)(in->end - in->at)) {
        in->bad = 1;
        return NULL;
    }
    in->at += count;
    return start;
}
/* Reads the next field of a struct. Returns its type, THRIFT_STOP at the end. *field is the number of the previous
 * field, then of this one. */
static int thrift_field(struct thrift *in, int32_t *field) {
    const unsigned char *byte = thrift_bytes(in, 1);
    if (!byte || !(*byte & 15)) return THRIFT_STOP;
    if (*byte >> 4) *field += *byte >> 4;
    else *field = thrift_int32(in);
    return in->bad ? THRIFT_STOP : *byte & 15;
}
/* Reads the head of a list: the number and type of its elements. An element has at least one byte, so a count beyond
 * the data is wrong. */
static uint32_t thrift_list(struct thrift *in, int *type) {
    const unsigned char *byte = thrift_bytes(in, 1);
    *type = byte ? *byte & 15 : 0;
    if (!byte) return 0;
    uint64_t count = *byte >> 4 == 15 ? thrift_varint(in) : *byte >> 4;
    if (count > (uint64_t)(in->end - in->at)) in->bad = 1;
    return in->bad ? 0 : (uint32_t)count;
}
static void thrift_skip(struct thrift *in, int type, int depth, int in_list) {
    int32_t field = 0;
    int inner, key;
    if (depth > THRIFT_DEPTH_MAX) in->bad = 1;
    if (in->bad) return;
    switch (type) {
    case THRIFT_TRUE: case THRIFT_FALSE:
        if (in_list) thrift_bytes(in, 1);
        break;
    case THRIFT_BYTE: thrift_bytes(in, 1); break;
    case THRIFT_I16: case THRIFT_I32: case THRIFT_I64: thrift_varint(in); break;
    case THRIFT_DOUBLE: thrift_bytes(in, 8); break;
    case THRIFT_BINARY: thrift_bytes(in, thrift_varint(in)); break;
    case THRIFT_LIST: case THRIFT_SET:
        for (uint32_t i = thrift_list(in, &inner); i && !in->bad; i--) thrift_skip(in, inner, depth + 1, 1);
        break;
    case THRIFT_MAP: {
        uint64_t count = thrift_varint(in);
        const unsigned char *types = count ? thrift_bytes(in, 1) : NULL;
        if (count > (uint64_t)(in->end - in->at)) in->bad = 1;
        inner = types ? *types & 15 : 0;
        key = types ? *types >> 4 : 0;
        for (; count && !in->bad; count--) {
            thrift_skip(in, key, depth + 1, 1);
            thrift_skip(in, inner, depth + 1, 1);
        }
        break;
    }
    case THRIFT_STRUCT:
        while ((inner = thrift_field(in, &field)) != THRIFT_STOP) thrift_skip(in, inner, depth + 1, 0);
        break;
    default: in->bad = 1;
    }
}

/* ---- the schema */
static void read_logical_type(struct thrift *in, struct schema_node *node) {
    int32_t field = 0;
    int type;
    while ((type = thrift_field(in, &field)) != THRIFT_STOP) {
        if (field == 1 || field == 4 || field == 12 || field == 13) node->kind = KIND_TEXT; /* STRING ENUM JSON UUID */
        if (field == 2 || field == 3) node->kind = KIND_LIST;                               /* MAP LIST */
        if (field == 5) node->kind = KIND_DECIMAL;
        thrift_skip(in, type, 0, 0);
    }
}
static void read_converted_type(struct schema_node *node, int32_t type) {
    if (type == 0 || type == 4 || type == 19) node->kind = KIND_TEXT; /* UTF8 ENUM JSON */
    if (type == 1 || type == 2 || type == 3) node->kind = KIND_LIST;  /* MAP MAP_KEY_VALUE LIST */
    if (type == 5) node->kind = KIND_DECIMAL;
    if (type >= 11 && type <= 14) node->kind = KIND_UNSIGNED;
}
static void read_schema_node(struct thrift *in, struct schema_node *node) {
    int32_t field = 0;
    int type;
    memset(node, 0, sizeof *node);
    node->type = TYPE_GROUP;
    while ((type = thrift_field(in, &field)) != THRIFT_STOP) {
        if (field == 1 && type == THRIFT_I32) {
            int32_t value = thrift_int32(in);
            if (value < TYPE_BOOLEAN || value > TYPE_FIXED) in->bad = 1;
            else node->type = (enum parquet_type)value;
        } else if (field == 2 && type == THRIFT_I32) node->type_length = thrift_int32(in);
        else if (field == 3 && type == THRIFT_I32) {
            int32_t value = thrift_int32(in);
            if (value < REQUIRED || value > REPEATED) in->bad = 1;
            else node->repetition = (enum parquet_repetition)value;
        } else if (field == 4 && type == THRIFT_BINARY) {
            uint64_t bytes = thrift_varint(in);
            const unsigned char *name = thrift_bytes(in, bytes);
            free(node->name);
            node->name = name ? copy_text((const char *)name, (size_t)bytes) : NULL;
        } else if (field == 5 && type == THRIFT_I32) node->child_count = thrift_int32(in);
        else if (field == 6 && type == THRIFT_I32) read_converted_type(node, thrift_int32(in));
        else if (field == 10 && type == THRIFT_STRUCT) read_logical_type(in, node);
        else thrift_skip(in, type, 0, 0);
    }
    if (!node->name) node->name = copy_text("", 0);
    if (node->child_count < 0) in->bad = 1;
    if (node->type == TYPE_FIXED && node->type_length <= 0) in->bad = 1;
}
static void read_schema(struct thrift *in, struct parquet_footer *footer) {
    int type;
    uint32_t count = thrift_list(in, &type);
    if (type != THRIFT_STRUCT || count > SCHEMA_NODES_MAX) in->bad = 1;
    for (uint32_t i = 0; i < count && !in->bad; i++) {
        if (footer->node_count == footer->node_capacity) {
            footer->node_capacity = footer->node_capacity * 2 + 32;
            footer->nodes = resize(footer->nodes, footer->node_capacity, sizeof *footer->nodes);
        }
        read_schema_node(in, &footer->nodes[footer->node_count++]);
    }
}
/* Sets levels, ends and leaves of the subtree at `index`. Returns 0 if the tree does not fit into the nodes. */
static int settle_node(struct parquet_footer *footer, uint32_t *next, int32_t definition, int32_t repeats, int depth) {
    uint32_t index = *next;
    if (index >= footer->node_count || depth > THRIFT_DEPTH_MAX) return 0;
    struct schema_node *node = &footer->nodes[(*next)++];
    node->definition = definition + (depth && node->repetition != REQUIRED);
    node->repeats = repeats + (depth && node->repetition == REPEATED);
    node->leaf = footer->leaf_count;
    if (!node->child_count && node->type == TYPE_GROUP && depth) return 0;
    if (!node->child_count && depth) footer->leaves[footer->leaf_count++] = index;
    if (node->child_count && node->type != TYPE_GROUP) return 0;
    for (int32_t i = 0; i < node->child_count; i++)
        if (!settle_node(footer, next, node->definition, node->repeats, depth + 1)) return 0;
    node->end = *next;
    return 1;
}

/* ---- row groups */
static void read_chunk_data(struct thrift *in, struct column_chunk *chunk) {
    int64_t data = -1, dictionary = -1;
    int32_t field = 0;
    int type;
    while ((type = thrift_field(in, &field)) != THRIFT_STOP) {
        if (field == 4 && type == THRIFT_I32) chunk->codec = thrift_int32(in);
        else if (field == 5 && type == THRIFT_I64) chunk->value_count = thrift_int(in);
        else if (field == 7 && type == THRIFT_I64) chunk->bytes = thrift_int(in);
        else if (field == 9 && type == THRIFT_I64) data = thrift_int(in);
        else if (field == 11 && type == THRIFT_I64) dictionary = thrift_int(in);
        else thrift_skip(in, type, 0, 0);
    }
    /* some writers write 0 if there is no dictionary */
    chunk->start = dictionary > 0 && dictionary < data ? dictionary : data;
}
static void read_chunk(struct thrift *in, struct column_chunk *chunk) {
    int32_t field = 0;
    int type;
    memset(chunk, 0, sizeof *chunk);
    chunk->start = -1;
    while ((type = thrift_field(in, &field)) != THRIFT_STOP) {
        if (field == 3 && type == THRIFT_STRUCT) read_chunk_data(in, chunk);
        else {
            if (field == 1) chunk->is_elsewhere = 1;
            if (field == 8 || field == 9) chunk->is_encrypted = 1;
            thrift_skip(in, type, 0, 0);
        }
    }
}
static void read_group(struct thrift *in, struct parquet_footer *footer) {
    struct column_chunk *chunks;
    int32_t field = 0;
    int type, element, has_columns = 0;
    int64_t rows = -1;
    size_t leaves = (size_t)footer->leaf_count;
    if (footer->group_count == footer->group_capacity) {
        footer->group_capacity = footer->group_capacity * 2 + 16;
        footer->group_rows = resize(footer->group_rows, footer->group_capacity, sizeof *footer->group_rows);
        footer->chunks = resize(footer->chunks, footer->group_capacity * (leaves + 1), sizeof *footer->chunks);
    }
    chunks = footer->chunks + footer->group_count * leaves;
    while ((type = thrift_field(in, &field)) != THRIFT_STOP) {
        if (field == 1 && type == THRIFT_LIST) {
            uint32_t count = thrift_list(in, &element);
            if (count != leaves || element != THRIFT_STRUCT) in->bad = 1;
            for (uint32_t i = 0; i < count && !in->bad; i++) read_chunk(in, &chunks[i]);
            has_columns = 1;
        } else if (field == 3 && type == THRIFT_I64) rows = thrift_int(in);
        else thrift_skip(in, type, 0, 0);
    }
    if (!has_columns || rows < 0) in->bad = 1;
    if (in->bad) return;
    footer->group_rows[footer->group_count++] = rows;
}
/* Checks the footer against the file's size. Returns NULL or a description of the error. */
static const char *check_chunks(const struct parquet_footer *footer, int64_t file_bytes) {
    int64_t rows = 0;
    for (size_t group = 0; group < footer->group_count; group++) {
        if (footer->group_rows[group] > INT64_MAX / 2 - rows) return "the row groups have too many rows";
        rows += footer->group_rows[group];
        for (int32_t leaf = 0; leaf < footer->leaf_count; leaf++) {
            const struct column_chunk *chunk = &footer->chunks[group * (size_t)footer->leaf_count + (size_t)leaf];
            int64_t rows_here = footer->group_rows[group];
            if (chunk->is_encrypted || chunk->is_elsewhere) continue; /* rejected when it is read */
            if (!rows_here && !chunk->value_count) continue;          /* an empty table */
            if (chunk->start < 4 || chunk->bytes < 0 || chunk->bytes > file_bytes - chunk->start)
                return "a column chunk is outside the file";
            if (chunk->value_count < rows_here) return "a column has fewer values than its row group has rows";
            if (!footer->nodes[footer->leaves[leaf]].repeats && chunk->value_count != rows_here)
                return "a column has more values than its row group has rows";
        }
    }
    return rows == footer->row_count ? NULL : "its row groups do not add up to its number of rows";
}

vp_result parquet_footer_read(struct parquet_footer *footer, const unsigned char *data, size_t bytes,
                              int64_t file_bytes, vp_error *error) {
    struct thrift in = {data, data + bytes, 0};
    const char *trouble;
    int32_t field = 0;
    uint32_t next = 0;
    int type, element, has_schema = 0;
    footer->row_count = -1;
    while ((type = thrift_field(&in, &field)) != THRIFT_STOP) {
        if (field == 2 && type == THRIFT_LIST && !has_schema) {
            read_schema(&in, footer);
            if (in.bad || !footer->node_count) break;
            footer->leaves = resize(NULL, footer->node_count, sizeof *footer->leaves);
            if (!settle_node(footer, &next, 0, 0, 0) || next != footer->node_count) in.bad = 1;
            has_schema = 1;
        } else if (field == 3 && type == THRIFT_I64) footer->row_count = thrift_int(&in);
        else if (field == 4 && type == THRIFT_LIST && has_schema) {
            for (uint32_t i = thrift_list(&in, &element); i && !in.bad; i--) read_group(&in, footer);
        } else thrift_skip(&in, type, 0, 0);
    }
    if (in.bad || !has_schema || footer->row_count < 0)
        return vp_fail(error, VP_ERR_FORMAT, -1, "", "the footer of this parquet file is damaged");
    if ((trouble = check_chunks(footer, file_bytes)) != NULL) return vp_fail(error, VP_ERR_FORMAT, -1, "", trouble);
    return VP_OK;
}
void parquet_footer_free(struct parquet_footer *footer) {
    for (uint32_t i = 0; i < footer->node_count; i++) free(footer->nodes[i].name);
    FREE_ALL(footer->nodes, footer->leaves, footer->chunks, footer->group_rows);
    memset(footer, 0, sizeof *footer);
}

/* ---- pages */
/* Reads the fields of one of the three kinds of page header. `v2` uses other field numbers. */
static void read_page_kind(struct thrift *in, struct page_header *header, int is_v2) {
    int32_t field = 0;
    int type;
    while ((type = thrift_field(in, &field)) != THRIFT_STOP) {
        int32_t *to = NULL;
        if (field == 1) to = &header->value_count;
        else if (is_v2 && field == 3) to = &header->row_count;
        else if (field == (is_v2 ? 4 : 2)) to = &header->encoding;
        else if (field == (is_v2 ? 5 : 3)) to = is_v2 ? &header->definition_bytes : &header->definition_encoding;
        else if (field == (is_v2 ? 6 : 4)) to = is_v2 ? &header->repetition_bytes : &header->repetition_encoding;
        if (is_v2 && field == 7 && (type == THRIFT_TRUE || type == THRIFT_FALSE))
            header->is_compressed = type == THRIFT_TRUE;
        if (to && type == THRIFT_I32) *to = thrift_int32(in);
        else thrift_skip(in, type, 0, 0);
    }
}
int page_header_read(struct page_header *header, const unsigned char *data, size_t bytes) {
    struct thrift in = {data, data + bytes, 0};
    int32_t field = 0;
    int type;
    memset(header, 0, sizeof *header);
    header->type = header->value_count = header->encoding = header->row_count = -1;
    header->definition_encoding = header->repetition_encoding = 3; /* RLE */
    header->is_compressed = 1;
    while ((type = thrift_field(&in, &field)) != THRIFT_STOP) {
        if (field == 1 && type == THRIFT_I32) header->type = thrift_int32(&in);
        else if (field == 2 && type == THRIFT_I32) header->uncompressed_bytes = thrift_int32(&in);
        else if (field == 3 && type == THRIFT_I32) header->compressed_bytes = thrift_int32(&in);
        else if ((field == 5 || field == 7 || field == 8) && type == THRIFT_STRUCT)
            read_page_kind(&in, header, field == 8);
        else thrift_skip(&in, type, 0, 0);
    }
    header->header_bytes = (size_t)(in.at - data);
    return !in.bad && header->uncompressed_bytes >= 0 && header->compressed_bytes >= 0;
}
