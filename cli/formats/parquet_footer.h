/* parquet_footer.h: the metadata of a Parquet file: schema, row groups, column chunks, page headers. It is read from
 * Thrift's compact protocol. Fields that are not needed are skipped. */
#ifndef VLMPROF_CLI_PARQUET_FOOTER_H
#define VLMPROF_CLI_PARQUET_FOOTER_H
#include "base/memory.h"
#include "vlmprof.h"

enum parquet_type { TYPE_BOOLEAN, TYPE_INT32, TYPE_INT64, TYPE_INT96, TYPE_FLOAT, TYPE_DOUBLE, TYPE_BYTE_ARRAY,
                    TYPE_FIXED, TYPE_GROUP };
enum parquet_kind { KIND_PLAIN, KIND_TEXT, KIND_LIST, KIND_UNSIGNED, KIND_DECIMAL };
enum parquet_repetition { REQUIRED, OPTIONAL, REPEATED };

/* A node of the schema; children follow their parent. */
struct schema_node {
    char *name;
    enum parquet_type type;
    enum parquet_kind kind;
    enum parquet_repetition repetition;
    int32_t type_length, child_count;
    int32_t definition, repeats; /* the levels of a value that is present */
    uint32_t end;                /* index after its subtree */
    int32_t leaf;                /* index among the leaves; for a group: its first leaf */
};

struct column_chunk {
    int64_t value_count, start, bytes; /* number of values of all its pages */
    int32_t codec;
    int is_encrypted, is_elsewhere;    /* flags: encrypted; in another file */
};

struct parquet_footer {
    struct schema_node *nodes; uint32_t node_count, node_capacity;
    uint32_t *leaves; int32_t leaf_count; /* node of each leaf */
    struct column_chunk *chunks;          /* [group][leaf] */
    int64_t *group_rows; size_t group_count, group_capacity;
    int64_t row_count;
};

vp_result parquet_footer_read(struct parquet_footer *footer, const unsigned char *data, size_t bytes,
                              int64_t file_bytes, vp_error *error);
void parquet_footer_free(struct parquet_footer *footer);

enum page_type { PAGE_DATA, PAGE_INDEX, PAGE_DICTIONARY, PAGE_DATA_V2 };
struct page_header {
    int32_t type, uncompressed_bytes, compressed_bytes, value_count, encoding, definition_encoding,
        repetition_encoding;
    int32_t row_count, definition_bytes, repetition_bytes; /* v2 */
    int is_compressed;
    size_t header_bytes;
};
/* Returns 1 if the data have a complete header, 0 if it is truncated or invalid. */
int page_header_read(struct page_header *header, const unsigned char *data, size_t bytes);

#endif
