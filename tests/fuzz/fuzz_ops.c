/* fuzz_ops.c: a table of operations that is read from JSON can be sorted by every key, printed in every form, and is the same when it was written
 * and read once more. libFuzzer entry. */
#include "vlmprof.h"
#include "vlmprof_ranges.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition) do { if (!(condition)) { fprintf(stderr, "fuzz_ops: line %d: %s\n", __LINE__, #condition); abort(); } } while (0)
enum { ROWS = 16 };

static vp_result count_bytes(void *user, const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) *(size_t *)user += text[i] != 0; /* reads each byte: AddressSanitizer watches */
    return VP_OK;
}

/* the table of a text; 0: it is none */
static int read_table(const char *text, size_t bytes, vp_ops *ops, vp_op *rows, char *names) {
    vp_json_node *nodes;
    vp_json json;
    size_t needed = 0;
    if (vp_json_parse(text, bytes, NULL, 0, NULL, &needed, NULL) != VP_ERR_CAPACITY) return 0;
    nodes = (vp_json_node *)malloc(needed * sizeof *nodes);
    MUST(nodes != NULL && vp_json_parse(text, bytes, nodes, needed, &json, NULL, NULL) == VP_OK);
    MUST(vp_ops_init(ops, rows, ROWS, 0, 0) == VP_OK);
    vp_result result = vp_ops_read_json(ops, &json, 0, names, bytes, NULL);
    MUST(result == VP_OK || ops->count == 0);
    if (result == VP_ERR_CAPACITY) MUST(json.nodes[vp_json_get(&json, 0, "rows")].count > ROWS); /* `bytes` are enough for the names */
    free(nodes);
    return result == VP_OK;
}

static char *write_table(const vp_ops *ops) {
    vp_json_writer w;
    vp_json_writer_init(&w, NULL, 0, 1);
    vp_ops_write_json(&w, ops);
    if (vp_json_finish(&w) != VP_ERR_CAPACITY) return NULL; /* a sum passes int64 */
    char *text = (char *)malloc(w.length_bytes + 1);
    MUST(text != NULL);
    vp_json_writer_init(&w, text, w.length_bytes + 1, 1);
    vp_ops_write_json(&w, ops);
    MUST(vp_json_finish(&w) == VP_OK);
    return text;
}

static void use(vp_ops *ops) {
    vp_ops_print_options options = vp_ops_print_options_default();
    size_t printed = 0;
    options.with_memory = options.with_flops = options.with_rates = 1;
    for (int32_t i = 0; vp_ops_key_name(i); i++) {
        MUST(vp_ops_sort(ops, vp_ops_key_name(i)) == VP_OK);
        options.max_name_column_width = i % 2 ? -1 : 4 + i;
        options.max_src_column_width = 4 + i;
        options.decimals = 3 + i % 7;
        options.time_unit = i % 4 == 0 ? NULL : i % 4 == 1 ? "us" : i % 4 == 2 ? "ms" : "s";
        vp_result result = vp_ops_print_torch(ops, &options, count_bytes, &printed);
        MUST(result == VP_OK || result == VP_ERR_RANGE);
        MUST(vp_ops_print_cprofile(ops, &options, count_bytes, &printed) == result && vp_ops_print_csv(ops, count_bytes, &printed) == result);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static vp_op rows[ROWS], again_rows[ROWS];
    vp_ops ops, read;
    if (bytes > 100000) return 0;
    char *names = (char *)malloc(bytes + 1);
    MUST(names != NULL);
    if (read_table((const char *)data, bytes, &ops, rows, names)) {
        char *text = write_table(&ops);
        if (text) {
            char *again_names = (char *)malloc(strlen(text) + 1);
            MUST(again_names != NULL);
            MUST(read_table(text, strlen(text), &read, again_rows, again_names));
            char *again = write_table(&read);
            MUST(again != NULL && strcmp(again, text) == 0);
            free(again);
            free(again_names);
        }
        free(text);
        use(&ops);
    }
    free(names);
    return 0;
}
