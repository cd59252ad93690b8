/* fuzz_table.c: libFuzzer target for data files of other tools: Parquet, TSV, CSV, JSON in all forms. The first byte chooses how the file is called, which
 * set it is said to be and whose prompts are wanted; the rest is the file. Whatever the bytes are, opening ends with rows or a message, and each row with an
 * example that is valid JSON, the same when it is read again. Pictures are decoded.
 * make fuzz */
#include "fuzz.h"
#include "formats/table.h"
#include "model/webp_gif.h"

enum { ROWS = 30 };

static void put(const struct example *example, struct text_buffer *out) {
    vp_json_writer writer;
    out->bytes = 0;
    vp_json_writer_init_sink(&writer, text_sink, out, 0);
    vp_json_begin_object(&writer);
    example_put(&writer, example);
    vp_json_end_object(&writer);
    MUST(vp_json_finish(&writer) == VP_OK);
}
static void read_rows(struct table *table) {
    struct row row = {0};
    struct example example = {0};
    struct text_buffer first = {NULL, 0, 0}, again = {NULL, 0, 0};
    for (size_t i = 0; i < table->row_count && i < ROWS; i++) {
        if (!table_example(table, i, &row, &example)) continue;
        example_see_pictures(&example, &row, table->folder, NULL, 1);
        for (size_t k = 0; k < row.blob_count && row.blobs[k].bytes < 4096; k++) {
            vp_image image;
            if (any_image_decode(row.blobs[k].data, row.blobs[k].bytes, &image, NULL) == VP_OK) vp_image_free(&image);
        }
        put(&example, &first);
        MUST(table_example(table, i, &row, &example));
        example_see_pictures(&example, &row, table->folder, NULL, 1);
        put(&example, &again);
        MUST(first.bytes == again.bytes && !memcmp(first.data, again.data, first.bytes));
    }
    free(first.data);
    free(again.data);
    row_free(&row);
    example_free(&example);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char *const sets[] = {NULL, "mmbench", "mmmu", "mathvista"}, *const origins[] = {NULL, "lmms_eval", "vlmevalkit", "none"};
    static struct memory_file file;
    struct table_wish wish = {NULL, NULL, NULL, NULL, NULL};
    struct table table;
    vp_error error = {VP_OK, -1, "", ""};
    fuzz_silence();
    if (!bytes) return 0;
    wish.task = sets[data[0] & 3];
    wish.origin = origins[data[0] >> 2 & 3];
    memory_file_fill(&file, (const char *)data + 1, bytes - 1);
    if (table_open(&table, file.path, &wish, &error) == VP_OK) {
        read_rows(&table);
        table_close(&table);
    } else MUST(error.text[0]);
    return 0;
}
