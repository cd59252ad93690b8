/* test_data.c: published data files: each format is read as the tools read it, and scored as they score it; hostile files. Runs $PROGRAM (default ./vlmprof) from
 * the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "formats/cells.h"
#include "formats/picture_header.h"
#include "base/sha256.h"
#include "formats/table.h"
#include "model/webp_gif.h"
#include "support/command.h"
#include "vlmprof.h"

#include <math.h>

static int is(const document *d, uint32_t node, const char *text) {
    return node != VP_JSON_NONE && vp_json_equals(&d->json, node, text);
}
/* the same text, with or without escapes */
static int same_text(const document *a, uint32_t i, const document *b, uint32_t k) {
    size_t bytes = 0, more = 0;
    static char one[1 << 16], other[1 << 16];
    return vp_json_text(&a->json, i, one, sizeof one, &bytes) == VP_OK && vp_json_text(&b->json, k, other, sizeof other, &more) == VP_OK
        && bytes == more && !memcmp(one, other, bytes);
}
/* Equal values; members of objects in any order. `less`: the left object may have additional members (a picture's size next to its hash). */
static int same(const document *a, uint32_t i, const document *b, uint32_t k, int less) {
    double p, q;
    char key[64];
    if (i == VP_JSON_NONE || k == VP_JSON_NONE) return 0;
    const vp_json_node *x = &a->nodes[i];
    const vp_json_node *y = &b->nodes[k];
    if (x->type != y->type) return 0;
    if (x->type == VP_JSON_NUMBER)
        return vp_json_to_double(&a->json, i, &p) == VP_OK && vp_json_to_double(&b->json, k, &q) == VP_OK && fabs(p - q) <= 1e-12 * fmax(1, fabs(q));
    if (x->type == VP_JSON_STRING) return same_text(a, i, b, k);
    if (x->type == VP_JSON_ARRAY) {
        if (x->count != y->count) return 0;
        for (uint32_t n = 0; n < x->count; n++)
            if (!same(a, vp_json_at(&a->json, i, n), b, vp_json_at(&b->json, k, n), less)) return 0;
        return 1;
    }
    if (x->type != VP_JSON_OBJECT) return 1;
    if (x->count < y->count || (!less && x->count != y->count)) return 0;
    for (uint32_t n = k + 1; n < y->end; n = b->nodes[n + 1].end)
        if (vp_json_text(&b->json, n, key, sizeof key, NULL) != VP_OK || !same(a, vp_json_get(&a->json, i, key), b, n + 1, less)) return 0;
    return 1;
}
/* The golden row and the program's row have the same members; of an error, only the presence is compared. */
static int check_row(const document *got, const document *want, const char *folder_name, int knows_content) {
    int good = 1;
    char key[64];
    for (uint32_t i = 1; good && i < want->nodes[0].end; i = want->nodes[i + 1].end) {
        if (!CHECK(vp_json_text(&want->json, i, key, sizeof key, NULL) == VP_OK)) return 0;
        if (!strcmp(key, "error") || (!strcmp(key, "content") && !knows_content))
            good = check_note(vp_json_get(&got->json, 0, key) != VP_JSON_NONE, __FILE__, __LINE__, "%s: no \"%s\"", folder_name, key);
        else good = check_note(same(got, vp_json_get(&got->json, 0, key), want, i + 1, 0), __FILE__, __LINE__, "%s, row %g, \"%s\"", folder_name,
                               number(want, 0, "row"), key);
    }
    return good && check_note(got->nodes[0].count == want->nodes[0].count, __FILE__, __LINE__, "%s: other members", folder_name);
}
/* the goldens in ../shared contain "this" instead of "that" for these files */
static int is_known_slip(const char *base, const document *want) {
    return !strncmp(base, "..", 2) && strstr(base, "openai") && number(want, 0, "row") == 0;
}
static void check_format(const char *base) {
    char path[700], file[128] = "", command[900];
    char *text, *line;
    const char *got = NULL;
    document w, g;
    snprintf(path, sizeof path, "%s/expected.jsonl", base);
    check_case("data --json: %s", base);
    if (!CHECK((text = check_read(path, NULL)) != NULL)) return;
    for (line = text; *line; line += strcspn(line, "\n") + 1) {
        if (!CHECK(parse(&w, line, strcspn(line, "\n")))) break;
        if (!is(&w, vp_json_get(&w.json, 0, "file"), file)) { /* rows of one file are consecutive */
            CHECK(!got || !*got);
            vp_json_text(&w.json, vp_json_get(&w.json, 0, "file"), file, sizeof file, NULL);
            snprintf(command, sizeof command, "data --json %s/%s", base, file);
            CHECK_INT(cli(command), 0);
            got = last.out;
        }
        if (CHECK(got && *got && parse(&g, got, strcspn(got, "\n")))) {
            check_row(&g, &w, base, !is_known_slip(base, &w));
            free(g.nodes);
            got += strcspn(got, "\n") + 1;
        }
        free(w.nodes);
        if (!got) break;
    }
    CHECK(got && !*got);
    free(text);
}
/* Returns 1 if the complete goldens are next to the repository. */
static int has_shared(void) {
    FILE *file = fopen("../shared/goldens/datasets/aliases.jsonl", "rb");
    if (file) fclose(file);
    else check_skip("the whole files", "no ../shared/goldens/datasets");
    return file != NULL;
}
static void test_formats(int shared) {
    static const char *const folders[] = {"vlmevalkit_tsv", "hf_parquet", "docvqa_json", "infovqa_json", "textvqa_json", "okvqa_json", "chartqa_json",
                                          "pope_jsonl", "ocrbench_json", "mathvista_json", "llava_conversations", "sharegpt4v", "llava_questions_jsonl",
                                          "openai_messages", "aiperf_jsonl", "vllm_custom"};
    char base[256];
    for (size_t i = 0; i < 2 * sizeof folders / sizeof *folders; i += 2 - (size_t)shared) {
        snprintf(base, sizeof base, "%s/golden%s/datasets/%s", i % 2 ? "../shared" : "tests", i % 2 ? "s" : "", folders[i / 2]);
        check_format(base);
    }
}

/* ---- Parquet: one table in many encodings */
static void check_table(const char *set, const char *file, const char *expected, int may_refuse) {
    char command[600], path[300];
    char *text, *line;
    const char *got;
    document w, g;
    check_case("data --json: a table written as %s", file);
    snprintf(path, sizeof path, "tests/golden/datasets/%s/%s", set, expected);
    snprintf(command, sizeof command, "data --json tests/golden/datasets/%s/%s", set, file);
    if (cli(command) != 0) {
        CHECK(may_refuse);
        CHECK_INT(last.code, 3);
        CHECK(last.err && strstr(last.err, "column \"id\"") && strstr(last.err, "python3 -c"));
        return;
    }
    if (!CHECK((text = check_read(path, NULL)) != NULL)) return;
    for (line = text, got = last.out; *line && *got; line += strcspn(line, "\n") + 1, got += strcspn(got, "\n") + 1) {
        if (!CHECK(parse(&w, line, strcspn(line, "\n")) && parse(&g, got, strcspn(got, "\n")))) break;
        check_note(same(&g, 0, &w, 0, 1), __FILE__, __LINE__, "%s: %.60s", file, line);
        FREE_ALL(w.nodes, g.nodes);
    }
    CHECK(!*line && !*got);
    free(text);
}
static void test_parquet(void) {
    static const char *const bad[] = {"bad_cut", "bad_empty", "bad_footer_length", "bad_magic", "bad_page"};
    char *text = check_read("tests/golden/datasets/parquet_features/files.jsonl", NULL), command[300];
    document d;
    if (!CHECK(text != NULL)) return;
    for (char *line = text; *line; line += strcspn(line, "\n") + 1) {
        char file[100];
        if (!CHECK(parse(&d, line, strcspn(line, "\n")))) break;
        vp_json_text(&d.json, vp_json_get(&d.json, 0, "file"), file, sizeof file, NULL);
        check_table("parquet_features", file, "expected.jsonl", !is(&d, vp_json_get(&d.json, 0, "minimal_reader"), "must read"));
        free(d.nodes);
    }
    free(text);
    check_table("parquet_features", "datasets_2_16.parquet", "datasets_2_16.expected.jsonl", 0);
    for (size_t i = 0; i < 5; i++) {
        check_case("data: %s is rejected", bad[i]);
        snprintf(command, sizeof command, "data tests/golden/datasets/parquet_features/%s.parquet", bad[i]);
        CHECK_INT(cli(command), 3);
    }
}
/* Rows give the same in any order; a skipped column is not read. */
static void test_parquet_order(void) {
    struct parquet *file = NULL;
    struct row row = {0}, other = {0};
    char *rows[12];
    check_case("parquet_row: rows in reverse, and rows without the damaged column");
    if (!CHECK(parquet_open(&file, "tests/golden/datasets/parquet_features/row_groups.parquet", NULL) == VP_OK)) return;
    CHECK_INT((long)parquet_row_count(file), 12);
    for (int i = 0; i < 12; i++) {
        row_clear(&row);
        CHECK(parquet_row(file, i, &row, NULL) == VP_OK);
        rows[i] = copy_text(row.json.data, row.json.bytes);
    }
    for (int i = 11; i >= 0; i -= 1 + (i & 1)) {
        row_clear(&row);
        CHECK(parquet_row(file, i, &row, NULL) == VP_OK && !strcmp(row.json.data, rows[i]));
    }
    for (int i = 0; i < 12; i++) free(rows[i]);
    row_clear(&row);
    CHECK(parquet_row(file, 12, &row, NULL) == VP_ERR_RANGE && parquet_row(file, -1, &row, NULL) == VP_ERR_RANGE);
    parquet_close(file);
    if (CHECK(parquet_open(&file, "tests/golden/datasets/parquet_features/bad_page.parquet", NULL) == VP_OK)) {
        vp_error error = {VP_OK, -1, "", ""};
        CHECK(parquet_row(file, 0, &row, &error) != VP_OK && strstr(error.text, "column \"id\""));
        parquet_close(file);
    }
    row_free(&row);
    row_free(&other);
}

/* Arrow: files of pyarrow and datasets; other files are rejected with the command that converts them */
static void test_arrow(void) {
    static const struct { const char *file, *reason; } bad[] = {{"lz4", "buffers compressed with LZ4"}, {"zstd_file", "buffers compressed with ZSTD"},
        {"dictionary", "column \"x\" with a dictionary"}, {"decimal", "column \"x\" of the type decimal"}, {"view", "column \"x\" of the type utf8 view"}};
    char command[300];
    struct arrow *file = NULL;
    struct row row = {0};
    check_table("arrow", "stream.arrow", "stream.expected.jsonl", 0);
    check_table("arrow", "file.arrow", "stream.expected.jsonl", 0);
    check_table("arrow", "types.arrow", "types.expected.jsonl", 0);
    for (size_t i = 0; i < 5; i++) {
        check_case("data: Arrow with %s is rejected", bad[i].reason);
        snprintf(command, sizeof command, "data tests/golden/datasets/arrow/bad_%s.arrow", bad[i].file);
        CHECK_INT(cli(command), 3);
        CHECK(last.err && strstr(last.err, bad[i].reason) && strstr(last.err, i == 1 ? "ipc.open_file(" : "ipc.open_stream("));
    }
    check_case("data: the folder of datasets.save_to_disk");
    CHECK_INT(cli("data --json tests/golden/datasets/arrow/saved"), 0);
    CHECK(last.out && strstr(last.out, "\"file\": \"data-00001-of-00002.arrow\", \"row\": 2") && strstr(last.out, "\"width\": 15") &&
          strstr(last.out, "\"metric\": \"ai2d_lmms\"") && !strstr(last.out, "error"));
    check_case("arrow_row: rows in reverse");
    if (!CHECK(arrow_open(&file, "tests/golden/datasets/arrow/stream.arrow", NULL) == VP_OK)) return;
    CHECK_INT((long)arrow_row_count(file), 9);
    CHECK(arrow_row(file, 0, &row, NULL) == VP_OK && arrow_row(file, 9, &row, NULL) == VP_ERR_RANGE && arrow_row(file, -1, &row, NULL) == VP_ERR_RANGE);
    char *first = copy_text(row.json.data, row.json.bytes);
    for (int i = 8; i >= 0; i--) {
        row_clear(&row);
        CHECK(arrow_row(file, i, &row, NULL) == VP_OK);
    }
    CHECK(!strcmp(first, row.json.data));
    free(first);
    row_free(&row);
    arrow_close(file);
}

/* ---- hostile files */
static void read_all(const char *path) {
    struct table_wish wish = {NULL, NULL, NULL, NULL, NULL};
    struct table table;
    struct row row = {0};
    struct example example = {0};
    if (table_open(&table, path, &wish, NULL) != VP_OK) return;
    for (size_t i = 0; i < table.row_count && i < 200; i++)
        if (table_example(&table, i, &row, &example)) example_see_pictures(&example, &row, table.folder, NULL, 0);
    row_free(&row);
    example_free(&example);
    table_close(&table);
}
/* a small file with each byte changed in turn, and at every length: no crash, no hang, no runaway memory */
static void check_damaged(const char *source, size_t step) {
    size_t bytes = 0;
    char *text = check_read(source, &bytes);
    char name[40];
    snprintf(name, sizeof name, "damaged%s", strrchr(source, '.'));
    const char *path = in_folder(name);
    check_case("a damaged %s", source);
    if (!CHECK(text != NULL)) return;
    for (size_t i = 0; i < bytes; i += step) {
        const char held = text[i];
        text[i] = (char)(held ^ (1 << i % 8));
        write_file(path, text, bytes);
        read_all(path);
        text[i] = (char)0xFF;
        write_file(path, text, bytes);
        read_all(path);
        text[i] = held;
        if (i % 7 == 0) {
            write_file(path, text, i);
            read_all(path);
        }
    }
    CHECK(bytes > 0);
    free(text);
}
static void test_hostile(void) {
    unsigned char bomb[] = {0xff, 0xff, 0xff, 0xff, 0x07, 0x00, 'a'}, out[64];
    check_damaged("tests/golden/datasets/parquet_features/snappy_v1.parquet", 3);
    check_damaged("tests/golden/datasets/parquet_features/v2_snappy.parquet", 5);
    check_damaged("tests/golden/datasets/vlmevalkit_tsv/by_hand.tsv", 3);
    check_damaged("tests/golden/datasets/arrow/types.arrow", 2);
    check_damaged("tests/golden/datasets/arrow/saved/data-00001-of-00002.arrow", 1);
    check_case("snappy_decompress: wrong sizes, copies from before the start");
    CHECK(!snappy_decompress(bomb, sizeof bomb, out, sizeof out));
    CHECK(!snappy_decompress((const unsigned char *)"\x05\x05\x01", 3, out, 5));         /* a copy with nothing to copy from */
    CHECK(!snappy_decompress((const unsigned char *)"\x05\x10" "ab", 4, out, 5));        /* a truncated literal */
    CHECK(snappy_decompress((const unsigned char *)"\x05\x00" "a\x01\x01", 5, out, 5) && !memcmp(out, "aaaaa", 5));
    CHECK(!snappy_decompress((const unsigned char *)"\x04\x00" "a\x01\x01", 5, out, 4)); /* one byte too many */
}
static void test_references(void) {
    static const char picture[] = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZG";
    char text[2000];
    check_case("data: references between rows: forward, chained, circular, missing");
    snprintf(text, sizeof text, "index\timage\tquestion\n1\t2\tforward\n2\t%s\tpicture\n3\t1\tchain\n4\t5\tno chain\n5\t2\tok\n6\t6\titself\n7\t8\tcircle\n"
             "8\t7\tcircle\n9\t77\tnothing\n10\t\tdropped\n", picture);
    write_text(in_folder("refs.tsv"), text);
    CHECK_INT(cli("data --json %F/refs.tsv"), 3);
    CHECK(last.out && strstr(last.out, "\"row\": 3, \"images\": null, \"metric\": null, \"error\": \"its image refers to index \\\"5\\\""));
    CHECK(strstr(last.out, "\"row\": 5, ") && strstr(last.out, "index \\\"6\\\"") && strstr(last.out, "index \\\"8\\\""));
    CHECK(strstr(last.out, "its image \\\"77\\\" is neither a picture in base64 nor the index of another row"));
    CHECK(!strstr(last.out, "\"row\": 9"));
    CHECK(strstr(last.out, "\"row\": 0") && strstr(last.out, "has a truncated or damaged header")); /* the picture of rows 0, 1, 2, 4 is cut */
}
/* what pandas 2.3.3 prints of odd columns */
static void test_columns(void) {
    check_case("data: columns of numbers as pandas prints them");
    put_file("/odd.tsv", "index\tquestion\tA\tB\tC\tD\tE\tF\tanswer\n0\tq\t007\t9223372036854775807\t18446744073709551615\t18446744073709551616\t1e3\t-5\tA\n"
             "1\tq\t +5\t\t1\t2.5\t 7\t9223372036854775808\tA\n2\tq\t-1\t1\t0\tx\tinf\tnan\tA\n");
    CHECK_INT(cli("data --json %F/odd.tsv"), 0);
    CHECK(last.out && strstr(last.out, "{\"A\": \"7\", \"B\": \"9.223372036854776e+18\", \"C\": \"18446744073709551615\", \"D\": \"18446744073709551616\", "
                                       "\"E\": \"1000.0\", \"F\": \"-5\"}"));
    CHECK(strstr(last.out, "{\"A\": \"5\", \"C\": \"1\", \"D\": \"2.5\", \"E\": \"7.0\", \"F\": \"9223372036854775808\"}"));
    CHECK(strstr(last.out, "{\"A\": \"-1\", \"B\": \"1.0\", \"C\": \"0\", \"D\": \"x\", \"E\": \"inf\", \"F\": \"nan\"}"));
    check_case("data: numbers below int64, and a short row, as pandas reads them");
    put_file("/low.tsv", "index\tquestion\tA\tB\tC\tD\n0\tq\t-9223372036854775809\t-9223372036854775809\t-9223372036854775809\t9223372036854775808\n"
             "1\tq\t1.5\t-0.0\t2\n");
    CHECK_INT(cli("data --json %F/low.tsv"), 0);
    CHECK(last.out && strstr(last.out, "{\"A\": \"-9.223372036854778e+18\", \"B\": \"-9223372036854775809\", \"C\": \"-9223372036854775809\", "
                                       "\"D\": \"9223372036854775808\"}"));
    CHECK(strstr(last.out, "{\"A\": \"1.5\", \"B\": \"-0.0\", \"C\": \"2\", \"D\": \"\"}"));
}
static const char *only_result(const char *name) {
    static char path[700];
    DIR *folder_of = opendir(in_folder(name));
    struct dirent *entry;
    while (folder_of && (entry = readdir(folder_of)) != NULL)
        if (strstr(entry->d_name, ".json") && !strstr(entry->d_name, "journal")) snprintf(path, sizeof path, "%s/%s/%s", folder, name, entry->d_name);
    if (folder_of) closedir(folder_of);
    return path;
}
/* Base64 of a multiple of 3 bytes. */
static void put_base64(const unsigned char *data, size_t bytes, char *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes; i += 3) {
        const uint32_t bits = (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2];
        for (int k = 3; k >= 0; k--) *out++ = digits[bits >> 6 * k & 63];
    }
    *out = 0;
}
static void test_errors(void) {
    size_t bytes = 0;
    check_case("data: the file type is detected from the first bytes");
    write_file(in_folder("a.xlsx"), "PK\3\4....", 8);
    CHECK_INT(cli("data %F/a.xlsx"), 3);
    CHECK(last.err && strstr(last.err, "save it as TSV"));
    write_file(in_folder("a.gz"), "\x1f\x8b\x08\0\0", 5);
    CHECK_INT(cli("data %F/a.gz"), 3);
    CHECK(last.err && strstr(last.err, "gunzip"));
    write_text(in_folder("a.txt"), "just a line\n");
    CHECK_INT(cli("data %F/a.txt"), 3);
    CHECK(last.err && strstr(last.err, "expected JSONL, JSON, TSV, CSV, Parquet or Arrow"));
    write_text(in_folder("a.csv"), "x,y\n1,2\n");
    CHECK_INT(cli("data %F/a.csv"), 3);
    CHECK(last.err && strstr(last.err, "without a column \"question\""));
    check_case("data and sweep: Parquet of an unknown set without a question");
    char *text = check_read("tests/golden/datasets/parquet_features/none_plain.parquet", &bytes);
    for (size_t i = 0; text && i + 8 < bytes; i++) if (!memcmp(text + i, "question", 8)) text[i] = 'Q';
    if (CHECK(text != NULL)) write_file(in_folder("q.parquet"), text, bytes);
    free(text);
    CHECK_INT(cli("data %F/q.parquet"), 3);
    CHECK(last.err && strstr(last.err, "without a column \"question\"; its columns are id, Question, answers, image, meta"));
    REFUSED("sweep --synthetic tiny --data %F/q.parquet --output_dir %F/o", 3, "without a column \"question\"");
    check_case("data: for a missing picture, the error names the record, its path and the folder");
    write_text(in_folder("m.jsonl"), "{\"question_id\": 1, \"text\": \"a?\", \"image\": \"no.jpg\"}\n{\"question_id\": 2, \"text\": \"b?\"}\nnot JSON\n");
    CHECK_INT(cli("data --json %F/m.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "picture \\\"no.jpg\\\" was not found in ") && strstr(last.out, "\"row\": 2, \"images\": null"));
    CHECK(last.err && strstr(last.err, "2 of 3 rows cannot be used"));
    check_case("data: an image under an unknown key, no answer under a known one");
    write_text(in_folder("k.jsonl"), "{\"question\": \"a?\", \"img\": \"no.jpg\"}\n");
    CHECK_INT(cli("data %F/k.jsonl"), 3);
    CHECK(last.out && strstr(last.out, "it has no \"image\", but has \"img\""));
    check_case("data and sweep reject the same row: a misspelt image key among good rows");
    write_text(in_folder("n.jsonl"), "{\"question\": \"a?\", \"answers\": [\"b\"], \"usage\": 1}\n{\"question\": \"a?\", \"Imgae\": \"no.jpg\"}\n");
    CHECK_INT(cli("data %F/n.jsonl"), 3);
    CHECK(last.err && strstr(last.err, "line 2: it has no \"image\", but has \"Imgae\""));
    REFUSED("sweep --synthetic tiny --data %F/n.jsonl --output_dir %F/o", 3, "line 2: it has no \"image\", but has \"Imgae\"");
    check_case("data and sweep count lines the same way, including blank ones; rows of other formats also count from 1");
    write_text(in_folder("n.jsonl"), "\n{\"question\": \"a?\", \"answers\": [\"b\"], \"usage\": 1}\n\n\n{\"question\": \"a?\", \"Imgae\": \"no.jpg\"}\n");
    CHECK_INT(cli("data %F/n.jsonl"), 3);
    CHECK(last.err && strstr(last.err, "line 5: it has no \"image\""));
    CHECK(last.out && strstr(last.out, "\n  line 2, id ") && strstr(last.out, "trouble   line 5: "));
    REFUSED("sweep --synthetic tiny --data %F/n.jsonl --output_dir %F/o", 3, "line 5: it has no \"image\"");
    CHECK_INT(cli("data --samples 1 tests/golden/datasets/vlmevalkit_tsv/MMStar_mini.tsv"), 0);
    CHECK(last.out && strstr(last.out, "\n  row 1, id "));
    check_case("data: the limit of new tokens for a known set in a sweep");
    write_text(in_folder("v2_OpenEnded_mscoco_val2014_questions.json"), "{\"data_subtype\": \"val2014\", "
               "\"questions\": [{\"image_id\": 1, \"question\": \"a?\", \"question_id\": 10}]}");
    cli("data --samples 0 %F/v2_OpenEnded_mscoco_val2014_questions.json");
    CHECK(last.out && strstr(last.out, "\n  answers   at most 32 new tokens; sweep --max_new_tokens sets another limit\n"));
    CHECK_INT(cli("data --samples 0 %F/k.jsonl"), 3);
    CHECK(last.out && !strstr(last.out, "new tokens"));
    check_case("data and sweep: samples with too few reference answers for vqa_seed get a warning each");
    write_text(in_folder("n.jsonl"), "{\"question\": \"a?\", \"answers\": [\"b\"]}\n{\"question\": \"a?\", \"answers\": [\"b\", \"b\", \"c\"]}\n");
    CHECK_INT(cli("data %F/n.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "note      1 sample has fewer than 3 reference answers: vqa_seed gives at most 1/3"));
    CHECK_INT(cli("sweep --plan --synthetic tiny --data %F/n.jsonl --output_dir %F/o"), 0);
    CHECK(last.err && strstr(last.err, "1 sample has fewer than 3 reference answers"));
    CHECK_INT(cli("sweep --plan --metric em --synthetic tiny --data %F/n.jsonl --output_dir %F/o"), 0);
    CHECK(last.err && !strstr(last.err, "reference answers"));
    CHECK_INT(cli_with("score --metric vqa_seed", "{\"prediction\": \"red\", \"answers\": \"red\"}\n", in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "\"score\": 0.333"));
    CHECK(last.err && !strstr(last.err, "not a list of references"));
    CHECK_INT(cli_with("score --metric vqa_seed", "{\"prediction\": \"red\", \"references\": \"red\"}\n{\"prediction\": \"red\", \"references\": [\"red\"]}\n",
                       in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "\"score\": 1.0}") && strstr(last.out, "\"score\": 0.333"));
    CHECK(last.err && strstr(last.err, "vlmprof: 1 row has one text, not a list of references: vqa_seed compares the whole text, so an equal one scores 1; "));
    write_text(in_folder("k.jsonl"), "{\"question\": \"a?\", \"answr\": \"b\"}\n");
    CHECK_INT(cli("data %F/k.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "no sample has an image: expected the key \"image\", found question, answr\n")
          && strstr(last.out, "no sample has an answer: expected the key \"answer\" or \"answers\", found question, answr\n"));
    put_file("/k.tsv", "question\timg\tanswr\na?\tno.jpg\tb\n");
    CHECK_INT(cli("data %F/k.tsv"), 0);
    CHECK(last.out && strstr(last.out, "no sample has an image") && strstr(last.out, "no sample has an answer"));
    check_case("data and sweep: repeated ids; data: empty questions and answers, an answer that is no option");
    write_text(in_folder("k.jsonl"), "{\"id\": 4, \"question\": \"a?\", \"answers\": [\"b\"]}\n{\"id\": 4, \"question\": \"\", \"answers\": []}\n"
               "{\"id\": 5, \"question\": \"a?\", \"answers\": [\"\"]}\n{\"id\": 5, \"question\": \"a?\", \"answers\": null}\n");
    CHECK_INT(cli("data %F/k.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "note      1 sample has an empty question\n") && strstr(last.out, "note      2 samples have no answer to score by\n")
          && strstr(last.out, "note      1 sample has only empty reference answers") && strstr(last.out, "note      2 ids are there more than once\n"));
    CHECK_INT(cli("sweep --plan --synthetic tiny --data %F/k.jsonl --output_dir %F/o"), 0);
    CHECK(last.err && strstr(last.err, "2 ids are there more than once: "));
    put_file("/k.tsv", "index\tquestion\tA\tB\tanswer\n1\ta?\tx\ty\tE\n2\ta?\tx\ty\tB\n");
    CHECK_INT(cli("data %F/k.tsv"), 0);
    CHECK(last.out && strstr(last.out, "note      1 sample has an answer that is none of its options"));
    check_case("data and sweep: a data URI in our own lines; one trouble for equal reasons");
    write_text(in_folder("k.jsonl"), "{\"question\": \"a?\", \"image\": \"data:image/png;base64,iVBORw0KGgo=\"}\n"
               "{\"question\": \"a?\", \"image\": \"data:image/png;base64,iVBO\"}\n");
    CHECK_INT(cli("data %F/k.jsonl"), 3);
    CHECK(last.out && strstr(last.out, "trouble   line 1: its \"image\" is a data URI") && strstr(last.out, "trouble   1 more") && !strstr(last.out, "line 2"));
    REFUSED("sweep --synthetic tiny --data %F/k.jsonl --output_dir %F/o", 3, "line 1: its \"image\" is a data URI");
    CHECK_INT(cli("data tests/golden/datasets/parquet_features/none_plain.parquet"), 0);
    CHECK(last.out && strstr(last.out, "  prompt    none: the raw question\n"));
    check_case("data: the metric of a row, or the default of a sweep");
    write_text(in_folder("k.jsonl"), "{\"question\": \"a?\", \"answer\": \"b\", \"metric\": \"anls\"}\n");
    CHECK_INT(cli("data %F/k.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "  metric    anls\n") && !strstr(last.out, "no sample has an answer"));
    CHECK_INT(cli("sweep --synthetic tiny --data %F/k.jsonl --output_dir %F/k --tier_list low --max_new_tokens 1 --num_runs_per_sample 1"), 0);
    text = check_read(in_folder("k/k_imgsizetier-low_crops0_topk2_blocks4.json"), NULL);
    CHECK(text && strstr(text, "\"accuracy_metric\": \"anls\""));
    free(text);
    write_text(in_folder("k.jsonl"), "{\"question\": \"a?\", \"answer\": \"b\", \"dataset\": \"doc_qa\"}\n");
    CHECK_INT(cli("data %F/k.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "  metric    anls, the default"));
    put_file("/k.tsv", "question\tanswer\na?\tb\n");
    CHECK_INT(cli("data %F/k.tsv"), 0);
    CHECK(last.out && strstr(last.out, "  metric    vqa_seed, the default"));
    check_case("data: VQA v2 annotations without questions, and questions without annotations");
    write_text(in_folder("v2_mscoco_val2014_annotations.json"), "{\"annotations\": [{\"question_id\": 1, \"answers\": []}]}");
    CHECK_INT(cli("data %F/v2_mscoco_val2014_annotations.json"), 3);
    CHECK(last.err && strstr(last.err, "give the questions file (v2_OpenEnded_mscoco_val2014_questions.json)"));
    write_text(in_folder("v2_OpenEnded_mscoco_val2014_questions.json"),
               "{\"data_subtype\": \"val2014\", \"questions\": [{\"question_id\": 1, \"image_id\": 2, \"question\": \"a?\"}]}");
    remove(in_folder("v2_mscoco_val2014_annotations.json"));
    CHECK_INT(cli("data %F/v2_OpenEnded_mscoco_val2014_questions.json"), 3);
    CHECK(last.out && strstr(last.out, "v2_mscoco_val2014_annotations.json is missing"));
    CHECK(last.out && strstr(last.out, "  prompt    none: the raw question, as in a sweep"));
    CHECK_INT(cli("data --prompt_origin lmms_eval %F/v2_OpenEnded_mscoco_val2014_questions.json"), 3);
    CHECK(last.out && strstr(last.out, "  prompt    lmms_eval\n"));
    check_case("data: COCO's captions and files like them are not annotations of VQA v2");
    put_file("/captions.json", "{\"images\": [{\"id\": 1, \"file_name\": \"a.jpg\"}], \"annotations\": [{\"id\": 1, \"image_id\": 1, \"caption\": \"a cat\"}]}");
    CHECK_INT(cli("data %F/captions.json"), 3);
    CHECK(last.err && strstr(last.err, "COCO's form, images and annotations with captions") && !strstr(last.err, "VQA v2"));
    put_file("/captions.json", "{\"images\": [], \"annotations\": [{\"image_id\": 1, \"question\": \"a?\", \"answer\": \"b\"}]}");
    CHECK_INT(cli("data %F/captions.json"), 3);
    CHECK(last.err && strstr(last.err, "annotations with questions, which is not read"));
    check_case("data and sweep: a table with names alone; a quoted cell that does not end, by its row");
    put_file("/k.tsv", "index\tquestion\tanswer\timage\n");
    CHECK_INT(cli("data %F/k.tsv"), 3);
    CHECK(last.err && strstr(last.err, "there is no row in it"));
    REFUSED("sweep --synthetic tiny --data %F/k.tsv --output_dir %F/o", 3, "there is no row in it");
    put_file("/k.csv", "index,question\n1,\"a\n");
    CHECK_INT(cli("data %F/k.csv"), 3);
    CHECK(last.err && strstr(last.err, "a quoted cell in row 1 is not closed"));
    check_case("data: all troubles up to 5, one metric next to rows without an answer, --check; sweep: damage by its row");
    text = check_read("samples/sign.png", &bytes);
    if (CHECK(text != NULL)) {
        char base64[4 * 600 + 8], table[8000];
        put_base64((const unsigned char *)text, 600, base64); /* cut behind its header */
        snprintf(table, sizeof table, "index\tquestion\tA\tB\tanswer\timage\n1\ta?\tx\ty\tB\t%s\n"
                 "2\ta?\tx\ty\t\t%s\n3\t\tx\ty\tA\t%s\n4\ta?\tx\ty\tA\t%%%%\n", base64, base64, base64);
        put_file("/k.tsv", table);
    }
    free(text);
    CHECK_INT(cli("data %F/k.tsv"), 0);
    CHECK(last.out && strstr(last.out, "trouble   row 3: it has no question\n") && strstr(last.out, "trouble   row 4: its image "));
    CHECK(last.out && strstr(last.out, "  metric    mcq_vlmevalkit\n") && strstr(last.out, "(headers only; --check decodes)"));
    cli("data --check %F/k.tsv");
    CHECK(last.out && strstr(last.out, "trouble   row 1: picture 1 cannot be decoded: "));
    CHECK_INT(cli("sweep --synthetic tiny --tier_list low --max_new_tokens 1 --num_runs_per_sample 1 --threads 1 --output_dir %F/cut --data %F/k.tsv"), 1);
    CHECK(last.err && strstr(last.err, "measures them again; the first: sample 0: row 1, picture 1: ") && !strstr(last.err, ".img"));
    text = check_read(only_result("cut"), NULL);
    CHECK(text && strstr(text, "\"reason\": \"row 1, picture 1: ") && !strstr(text, ".img"));
    free(text);
    check_case("sweep: a missing picture of a line names the line");
    write_text(in_folder("k.jsonl"), "{\"question\": \"a?\", \"image\": \"no.png\"}\n{\"question\": \"a?\"}\n");
    CHECK_INT(cli("sweep --synthetic tiny --tier_list low --max_new_tokens 1 --num_runs_per_sample 1 --threads 1 --output_dir %F/gone --data %F/k.jsonl"), 1);
    text = check_read(only_result("gone"), NULL);
    CHECK(text && strstr(text, "\"reason\": \"line 1: ") && strstr(text, "no.png: there is no such file\""));
    free(text);
    check_case("sweep --plan: the least difference that few samples distinguish");
    CHECK_INT(cli("sweep --plan --synthetic tiny --data samples/questions.jsonl --num_samples 8 --output_dir %F/o"), 0);
    CHECK(last.out && strstr(last.out, "resolution  8 samples distinguish accuracies that differ by 75 points of 100 or more (6 questions"));
    check_case("sweep --data: an unknown format");
    CHECK_INT(cli("sweep --synthetic tiny --data %F/a.xlsx --output_dir %F/o"), 3);
    CHECK(last.err && strstr(last.err, "save it as TSV"));
}
/* Options and answer of %F/FILE, as shown by data and used by a sweep. */
static void check_choice(const char *file, const char *answer) {
    char line[300];
    document d;
    snprintf(line, sizeof line, "data %%F/%s", file);
    CHECK_INT(cli(line), 0);
    CHECK(last.out && strstr(last.out, "  metric    mc") && strstr(last.out, answer));
    CHECK(last.out && strstr(last.out, "prompt    none: the question and its options") && strstr(last.out, "    prompt    q\\nA: red\\nB: blue\n"));
    snprintf(line, sizeof line, "sweep --synthetic tiny --tier_list low --max_new_tokens 1 --num_runs_per_sample 1 --threads 1 --output_dir %%F/mc --data %%F/%s", file);
    CHECK_INT(cli(line), 0);
    if (!CHECK(load(&d, only_result("mc")))) return;
    CHECK(is(&d, member(&d, 0, "accuracy_metric"), "mc"));
    CHECK(is(&d, member(&d, vp_json_at(&d.json, member(&d, 0, "per_sample_results"), 0), "prompt"), " User: q\nA: red\nB: blue\n Assistant:"));
    unload(&d);
    remove_folder(in_folder("mc"));
}
/* A table and its `data --output` lines give a sweep the same prompts, rules and answer lengths. */
static void check_round_trip(const char *file, const char *task) {
    static const char sweep[] = "sweep --synthetic tiny --tier_list low --num_samples 2 --num_runs_per_sample 1 --threads 1 --top_k_list 2 --num_active_blocks_list 2";
    char line[600];
    document table, own;
    snprintf(line, sizeof line, "data --samples 0 --output %%F/round.jsonl --images %%F/round %s", file);
    CHECK_INT(cli(line), 0);
    snprintf(line, sizeof line, "%s --output_dir %%F/round-table --data %s", sweep, file);
    CHECK_INT(cli(line), 0);
    snprintf(line, sizeof line, "%s --output_dir %%F/round-own --data %%F/round.jsonl --dataset_name %s", sweep, task);
    CHECK_INT(cli(line), 0);
    if (!CHECK(load(&table, only_result("round-table"))) || !CHECK(load(&own, only_result("round-own")))) return;
    CHECK(same_text(&table, member(&table, 0, "accuracy_metric"), &own, member(&own, 0, "accuracy_metric")));
    CHECK_INT(number(&table, 0, "max_new_tokens"), number(&own, 0, "max_new_tokens"));
    uint32_t rows = member(&table, 0, "per_sample_results");
    uint32_t own_rows = member(&own, 0, "per_sample_results");
    for (uint32_t i = 0; i < table.nodes[rows].count; i++) {
        const uint32_t row = vp_json_at(&table.json, rows, i), own_row = vp_json_at(&own.json, own_rows, i);
        CHECK(same_text(&table, member(&table, row, "prompt"), &own, member(&own, own_row, "prompt")));
        CHECK_INT(number(&table, row, "input_text_tokens"), number(&own, own_row, "input_text_tokens"));
    }
    unload(&table);
    unload(&own);
    remove_folder(in_folder("round-table"));
    remove_folder(in_folder("round-own"));
}
static void test_output(void) {
    check_case("data --output --images: vlmprof JSONL that gives the same rows when read");
    CHECK_INT(cli("data --output %F/own.jsonl --images %F/pictures tests/golden/datasets/vlmevalkit_tsv/MMStar_mini.tsv"), 0);
    CHECK_INT(cli("data --json %F/own.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "01684546fac75d5c59735ff134856528c2c887efe1b48942488cb6ebfb2199dc"));
    CHECK(strstr(last.out, "Please select the correct answer from the options above. \\n"));
    check_case("data --output into another folder: picture paths are relative to it, and a row keeps its category");
    CHECK_INT(cli("data --output %F/moved/own.jsonl --images %F/moved/pictures tests/golden/datasets/vlmevalkit_tsv/MMStar_mini.tsv"), 0);
    char *text = check_read(in_folder("moved/own.jsonl"), NULL);
    CHECK(text && strstr(text, "\"image\": \"pictures/MMStar_mini_0_0.jpg\"") && strstr(text, "\"category\": \"ocr\""));
    free(text);
    CHECK_INT(cli("data --json %F/moved/own.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "01684546fac75d5c59735ff134856528c2c887efe1b48942488cb6ebfb2199dc"));
    CHECK_INT(cli("data --output %F/own2.jsonl tests/golden/datasets/vlmevalkit_tsv/MMStar_mini.tsv"), 2);
    check_case("data --output: several pictures and options keep their order");
    put_file("/two.jsonl", "{\"id\": 1, \"question\": \"q\", \"images\": [\"cat.jpg\", \"cat.jpg\"], \"options\": [\"red\", \"sky blue\"], \"answer\": \"red\"}\n"
             "{\"id\": 2, \"question\": \"q\", \"answer\": \"x\"}\n");
    CHECK_INT(cli("data --output %F/two-own.jsonl --image_dir samples %F/two.jsonl"), 0);
    text = check_read(in_folder("two-own.jsonl"), NULL);
    CHECK(text && strstr(text, "cat.jpg\", \"") && strstr(text, "\"options\": [\"red\", \"sky blue\"]") && strstr(text, "{\"id\": 2, \"question\": \"q\", \"ans"));
    free(text);
    check_case("data --output: a sweep of the lines asks and scores like a sweep of the table");
    check_round_trip("tests/golden/datasets/vlmevalkit_tsv/MMStar_mini.tsv", "MMStar-mini");
    check_round_trip("tests/golden/datasets/hf_parquet/docvqa_validation.parquet", "docvqa-validation");
    CHECK_INT(cli("data %F/round.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "  prompt    lmms_eval\n  metric    anls_lmms\n  answers   at most 32 new tokens"));
    check_case("a row with options and an answer among them: mc by default, in data and in a sweep");
    put_file("/mc.jsonl", "{\"question\": \"q\", \"options\": [\"red\", \"blue\"], \"answer\": \"B\"}\n");
    check_choice("mc.jsonl", "answer    B\n");
    put_file("/mc.jsonl", "{\"question\": \"q\", \"choices\": [\"red\", \"blue\"], \"answer\": 1}\n");
    check_choice("mc.jsonl", "answer    B\n");
    put_file("/mc.json", "[{\"question\": \"q\", \"choices\": [\"red\", \"blue\"], \"answer\": \"blue\"}]\n");
    check_choice("mc.json", "answer    blue\n");
    put_file("/mc.jsonl", "{\"question\": \"q\", \"options\": [\"red\", \"blue\"], \"answer\": \"green\"}\n");
    CHECK_INT(cli("data %F/mc.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "  metric    vqa_seed, the default"));
    check_case("data: the defaults of a sweep for lines of a known set");
    CHECK_INT(cli("data --dataset_name text_vqa %F/mc.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "  metric    vqa_seed, the default") && strstr(last.out, "at most 64 new tokens"));
}

/* ---- scores and names */
static void check_scores(const char *folder_name, const char *metric) {
    char path[300], command[600];
    char *text, *line;
    const char *got;
    int good = 1;
    document w, g;
    snprintf(path, sizeof path, "%s/%s.jsonl", folder_name, metric);
    check_case("score --metric %s: %s", metric, path);
    if (!CHECK((text = check_read(path, NULL)) != NULL)) return;
    snprintf(command, sizeof command, "score --metric %s %s", metric, path);
    CHECK_INT(cli(command), 0);
    for (line = text, got = last.out; *line && *got && good; line += strcspn(line, "\n") + 1, got += strcspn(got, "\n") + 1) {
        if (!CHECK(parse(&w, line, strcspn(line, "\n")) && parse(&g, got, strcspn(got, "\n")))) break;
        good = check_note(same(&g, member(&g, 0, "score"), &w, member(&w, 0, "score"), 0), __FILE__, __LINE__, "%s: %.200s", metric, line);
        if (member(&w, 0, "parsed") != VP_JSON_NONE && member(&g, 0, "parsed") != VP_JSON_NONE && w.nodes[member(&w, 0, "parsed")].type == VP_JSON_STRING)
            good &= check_note(same(&g, member(&g, 0, "parsed"), &w, member(&w, 0, "parsed"), 0), __FILE__, __LINE__, "%s parsed: %.200s", metric, line);
        FREE_ALL(w.nodes, g.nodes);
    }
    CHECK(good && !*line && !*got);
    free(text);
}
static void test_scores(int shared) {
    static const char *const metrics[] = {
        "ai2d_lmms", "anls_lmms", "anls_vlmevalkit", "mathvista_lmms", "mathvista_official", "mathvista_vlmevalkit", "mcq_circular_vlmevalkit", "mcq_lmms",
        "mcq_vlmevalkit", "mmbench_static_lmms", "mme_lmms", "mmmu_lmms", "mmmu_official", "mmmu_pro_cot_vlmevalkit", "mmmu_pro_lmms", "mmmu_pro_official",
        "mmmu_vlmevalkit", "ocrbench_lmms", "ocrbench_vlmevalkit", "pope_lmms", "pope_official", "realworldqa_lmms", "relaxed_lmms", "relaxed_vlmevalkit",
        "scienceqa_lmms", "seed_bench_lmms", "tallyqa_vlmevalkit", "textvqa_lmms", "vqa_vlmevalkit", "vqav2_lmms", "yes_no_vlmevalkit"};
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        check_scores("tests/golden/datasets/scores", metrics[i]);
        if (shared) check_scores("../shared/goldens/datasets/scores", metrics[i]);
    }
}
static void check_sets(const char *name) {
    char path[200], command[300];
    document w, g;
    check_case("score --metric %s: totals match the tools', with intervals", name);
    snprintf(path, sizeof path, "tests/golden/datasets/scores/%s.json", name);
    snprintf(command, sizeof command, "score --metric %s %s", name, path);
    CHECK_INT(cli(command), 0);
    if (!CHECK(load(&w, path))) return;
    uint32_t sets = member(&w, 0, "sets");
    const char *got = last.out;
    for (uint32_t i = 0; got && *got && i < w.nodes[sets].count; i++, got += strcspn(got, "\n") + 1) {
        static const char *const tools[] = {"official", "vlmevalkit", "lmms_eval"};
        uint32_t set = vp_json_at(&w.json, sets, i);
        if (!CHECK(parse(&g, got, strcspn(got, "\n")))) break;
        for (int k = 0; k < 3; k++)
            if (member(&w, set, tools[k]) != VP_JSON_NONE)
                check_note(same(&g, member(&g, 0, tools[k]), &w, member(&w, set, tools[k]), 0), __FILE__, __LINE__, "%s, set %u, %s", name, i, tools[k]);
        CHECK(member(&g, 0, "intervals") != VP_JSON_NONE);
        free(g.nodes);
    }
    CHECK(got && !*got);
    unload(&w);
}
static void test_groups(void) {
    static const char rows[] = "{\"index\": 1, \"prediction\": \"A\", \"options\": [\"x\", \"y\"], \"answer\": \"A\"}\n"
                               "{\"index\": 1000001, \"prediction\": \"A\", \"options\": [\"y\", \"x\"], \"answer\": \"B\"}\n"
                               "{\"index\": 2, \"prediction\": \"B\", \"options\": [\"x\", null, \"z\"], \"answer\": \"B\"}\n"
                               "{\"index\": 3, \"prediction\": \"C\", \"options\": [\"x\", null, \"z\"], \"answer\": \"C\"}\n";
    check_sets("mme_sets");
    check_sets("pope_sets");
    check_case("score --metric mcq_circular_vlmevalkit: all rows of a question count once; a null option is not an option");
    CHECK_INT(cli_with("score --json --metric mcq_circular_vlmevalkit", rows, in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "\"mean\": 0.5, ") && strstr(last.out, "\"groups\": 3, \"group_mean\": 0.3333333333333333, \"group_interval\": ["));
}
static void test_answers(void) {
    check_case("score: answers of lmms-eval and VLMEvalKit, by category, against a baseline");
    put_file("/lmms.jsonl", "{\"doc_id\": 0, \"doc\": {\"category\": \"x\"}, \"target\": \"A\", \"resps\": [[\"A. x\"]], \"filtered_resps\": [\"A. x\"]}\n"
             "{\"doc_id\": 1, \"doc\": {\"category\": \"y\", \"options\": \"['a', 'b']\"}, \"target\": \"B\", \"resps\": [[\"B\"]], \"filtered_resps\": [[\"B\"]]}\n");
    put_file("/base.jsonl", "{\"id\": 0, \"prediction\": \"B\", \"answer\": \"A\"}\n{\"id\": 1, \"prediction\": \"B\", \"answer\": \"B\"}\n");
    CHECK_INT(cli("score --json --metric mcq_lmms --by category --baseline %F/base.jsonl %F/lmms.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "\"mean\": 1.0, ") && strstr(last.out, "\"pairs\": 2, \"difference\": 0.5, ")
          && strstr(last.out, "\"by\": {\"x\": {\"metric\": \"mcq_lmms\", \"rows\": 1")
          && strstr(last.out, "\"y\": {\"metric\": \"mcq_lmms\", \"rows\": 1"));
    CHECK(last.err && strstr(last.err, "answers of lmms-eval") && strstr(last.err, "1 rows better, 0 worse"));
    CHECK(last.out && strstr(last.out, "\"difference_interval\": [") && strstr(last.out, "\"unread\": 0}, \"y\""));
    CHECK_INT(cli("score --json --metric mcq_lmms --baseline %F/base.jsonl %F/base.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "\"difference_interval\": null") && strstr(last.err, "too few different pairs for an interval"));
    REFUSED("score --metric mcq_lmms --by categry %F/base.jsonl", 2, "--by categry: no row has this field; the fields are id, prediction, answer");
    put_file("/no.tsv", "index\tquestion\tanswer\n0\tq\tA\n");
    REFUSED("score --metric mcq_lmms %F/no.tsv", 3, "the table needs the columns \"prediction\" and \"answer\"; it has index, question, answer");
    put_file("/result.json", "{\n \"schema\": \"vlmprof-sweep-2\"\n}\n");
    REFUSED("score --metric em %F/result.json", 3, "is a result file: use vlmprof rescore");
    put_file("/vk.tsv", "index\tquestion\tA\tB\tanswer\tprediction\n0\tq\tx\ty\tA\tA\n1\tq\tx\tNone\tA\tThe answer is B\n");
    CHECK_INT(cli("score --metric mcq_vlmevalkit %F/vk.tsv"), 0);
    CHECK(last.out && strstr(last.out, "{\"id\": 1, \"parsed\": \"Z\", \"score\": 0.0}"));
    /* as written by lmms-eval 75571cfe: one answer as a text, no doc */
    put_file("/lmms2.jsonl", "{\"doc_id\": 0, \"target\": \"Yes\", \"filtered_resps\": \"yes\", \"token_counts\": [null], \"doc_hash\": \"x\", "
             "\"mme_perception_score\": {\"question_id\": \"OCR/1.jpg\", \"category\": \"OCR\", \"score\": 1.0}, \"input\": \"q\"}\n"
             "{\"doc_id\": 1, \"target\": \"No\", \"resps\": [\"No.\"], \"filtered_resps\": \"No\", \"mme_perception_score\": {\"question_id\": \"OCR/1.jpg\", "
             "\"category\": \"OCR\", \"score\": 1.0}, \"input\": \"q\"}\n");
    CHECK_INT(cli("score --metric mme_sets %F/lmms2.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "\"lmms_eval\": {\"perception\": 200.0, "));
    put_file("/odd.jsonl", "{\"prediction\": \"yes\", \"answer\": \"Yes\", \"category\": \"OCR\", \"image_path\": \"1.jpg\"}\n");
    CHECK_INT(cli("score --metric mme_sets %F/odd.jsonl"), 0); /* lmms-eval fails at a picture without two rows */
    CHECK(last.out && strstr(last.out, "\"lmms_eval\": {\"perception\": null, "));
    CHECK_INT(cli("score --json --metric mme_lmms --by category %F/lmms2.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "\"by\": {\"OCR\": {\"metric\": \"mme_lmms\", \"rows\": 2"));
    put_file("/circles.tsv", "index\tg_index\tquestion\tA\tB\tanswer\tprediction\n0\t7\tq\tx\ty\tA\tA\n1\t7\tq\tx\ty\tA\tB\n2\t8\tq\tx\ty\tA\tA\n");
    CHECK_INT(cli("score --json --metric mcq_circular_vlmevalkit %F/circles.tsv"), 0);
    CHECK(last.out && strstr(last.out, "\"groups\": 2, \"group_mean\": 0.5"));
    CHECK_INT(cli("rescore --metric mcq_vlmevalkit %F/vk.tsv"), 0);
    CHECK(last.out && strstr(last.out, "{\"id\": 0, \"parsed\": \"A\", \"score\": 1.0}"));
    REFUSED("rescore %F/vk.tsv", 2, "--metric M");
    write_file(in_folder("vk.xlsx"), "PK\3\4....", 8);
    REFUSED("score --metric mcq_vlmevalkit %F/vk.xlsx", 3, "save it as TSV");
}
/* found by comparison with lmms-eval's own function on made-up answers */
static void test_found_answers(void) {
    check_case("score: spaces after the signs that mcq_lmms strips");
    put_file("/found.jsonl", "{\"prediction\": \"!\\nA/B\", \"choices\": [\"A\", \"B\"], \"answer\": \"A\"}\n"
             "{\"prediction\": \". B and C: cat\", \"choices\": [\"A\", \"B\", \"C\"], \"answer\": \"B\"}\n");
    CHECK_INT(cli("score --metric mcq_lmms %F/found.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "\"parsed\": \"A\", \"score\": 1.0") && strstr(last.out, "\"parsed\": \"B\", \"score\": 1.0"));
}
static void test_names(void) {
    char *text = check_read("tests/golden/datasets/aliases.jsonl", NULL);
    document d;
    check_case("task_find: names in the spellings that people use");
    if (!CHECK(text != NULL)) return;
    for (char *line = text; *line; line += strcspn(line, "\n") + 1) {
        char name[100];
        if (!CHECK(parse(&d, line, strcspn(line, "\n")))) break;
        vp_json_text(&d.json, member(&d, 0, "name"), name, sizeof name, NULL);
        const struct task *task = task_find(name);
        check_note(task ? is(&d, member(&d, 0, "canonical"), task->name) : is_null(&d, 0, "canonical"), __FILE__, __LINE__, "%s is %s", name,
                   task ? task->name : "none");
        free(d.nodes);
    }
    free(text);
    check_case("help tasks lists every set");
    CHECK_INT(cli("help tasks"), 0);
    for (size_t i = 0; task_at(i); i++) CHECK(last.out && strstr(last.out, task_at(i)->name));
    check_case("data: --prompt_origin and --dataset_name");
    CHECK_INT(cli("data --json --prompt_origin lmms_eval tests/golden/datasets/vlmevalkit_tsv/MMBench_mini.tsv"), 0);
    CHECK(last.out && strstr(last.out, "There are several options:") && strstr(last.out, "mmbench_static_lmms"));
    CHECK_INT(cli("data --json --prompt_origin none tests/golden/datasets/vlmevalkit_tsv/MMBench_mini.tsv"), 0);
    CHECK(last.out && strstr(last.out, "\"question\": \"Which one fits?\""));
    CHECK_INT(cli("data --dataset_name nothing_known tests/golden/datasets/vlmevalkit_tsv/MMBench_mini.tsv"), 2);
}

/* ---- small parts */
static void test_small(void) {
    static const struct { double value; const char *text; } floats[] = {
        {2, "2.0"}, {0.1, "0.1"}, {1e16, "1e+16"}, {123456789012345680.0, "1.2345678901234568e+17"}, {1e-5, "1e-05"}, {0.0001, "0.0001"}, {-1.5, "-1.5"}, {0, "0.0"}};
    struct text_list list = {NULL, 0};
    char text[80];
    size_t bytes;
    int32_t width, height;
    check_case("python_float, python_list, base64, SHA-256, picture sizes");
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        python_float(floats[i].value, text, sizeof text);
        CHECK(!strcmp(text, floats[i].text));
    }
    CHECK(python_list("['a', \"it's\", 2007, -1.50, None, 'x\\ty\\u00e9' 'z',]", &list));
    CHECK_INT((long)list.count, 6);
    CHECK(!strcmp(list.items[1], "it's") && !strcmp(list.items[2], "2007") && !strcmp(list.items[3], "-1.5") && !strcmp(list.items[5], "x\ty\xc3\xa9z"));
    text_list_free(&list);
    CHECK(!python_list("['a'", &list) && !python_list("[a]", &list) && !python_list("['a' 007]", &list) && !python_list("['a\n']", &list) && !list.count);
    text_list_free(&list);
    unsigned char *data = base64_decode("aGV sbG8=\n", 10, &bytes);
    CHECK(data && bytes == 5 && !memcmp(data, "hello", 5));
    free(data);
    CHECK(!base64_decode("aGVsbG8", 7, &bytes) && !base64_decode("aGV*", 4, &bytes) && !base64_decode("", 0, &bytes) && !base64_decode("aG=V", 4, &bytes));
    sha256_text("abc", 3, text);
    CHECK(!strcmp(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    CHECK(picture_size((const unsigned char *)"GIF89a\x05\0\x07\0", 10, &width, &height) && width == 5 && height == 7);
    CHECK(!picture_size((const unsigned char *)"GIF89a\x05", 7, &width, &height));
}

static void test_pictures(void) {
    static const struct { const char *name; int32_t width, height; } pictures[] = {{"g1.gif", 33, 21}, {"w0.webp", 7, 5}};
    for (size_t i = 0; i < 2; i++) {
        char path[200];
        size_t bytes = 0, wanted_bytes = 0;
        int32_t width = 0, height = 0;
        vp_error error = {VP_OK, -1, "", ""};
        vp_image image = {0, 0, NULL};
        check_case("any_image_decode: %s as Pillow reads it", pictures[i].name);
        snprintf(path, sizeof path, "tests/golden/datasets/pictures/%s", pictures[i].name);
        char *file = check_read(path, &bytes);
        strcat(path, ".rgb");
        char *wanted = check_read(path, &wanted_bytes);
        if (!CHECK(file && wanted)) return;
        vp_result result = any_image_decode((const uint8_t *)file, bytes, &image, &error);
        if (result == VP_ERR_UNSUPPORTED && strstr(error.text, "libwebp is not installed")) check_skip(pictures[i].name, "libwebp is not installed");
        else if (CHECK(result == VP_OK && image.width_px == pictures[i].width && image.height_px == pictures[i].height)) {
            CHECK(wanted_bytes == (size_t)image.width_px * (size_t)image.height_px * 3 && !memcmp(image.rgb, wanted, wanted_bytes));
            CHECK(any_image_size((const uint8_t *)file, bytes, &width, &height, NULL) == VP_OK && width == image.width_px && height == image.height_px);
            vp_image_free(&image);
            CHECK(any_image_decode((const uint8_t *)file, bytes * 2 / 3, &image, &error) == VP_ERR_FORMAT);
        }
        FREE_ALL(file, wanted);
    }
    check_case("sweep: a sample with a TIFF picture fails, with a hint");
    put_file("/tiff.jsonl", "{\"question_id\": 1, \"text\": \"a?\", \"image\": \"t0.tif\"}\n");
    CHECK_INT(cli("data --image_dir tests/golden/datasets/pictures %F/tiff.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "TIFF pictures are not decoded: convert them to PNG"));
}
/* the row of a sample in several_command's result file, whatever its configuration's name is */
static uint32_t several_row(const document *d, int64_t sample) {
    const uint32_t rows = member(d, 0, "per_sample_results");
    for (uint32_t i = rows + 1; i < d->nodes[rows].end; i = d->nodes[i].end) {
        int64_t id = -1;
        vp_json_to_int(&d->json, member(d, i, "sample_id"), &id);
        if (id == sample) return i;
    }
    return VP_JSON_NONE;
}
static const char SEVERAL_COMMAND[] = "sweep --model tests/golden/othermodels/smolvlm/checkpoint --max_new_tokens 2 --num_samples 9 --num_runs_per_sample 1 "
                                      "--threads 1 --quiet --image_dir tests/golden/othermodels/images --output_dir %F/several --data %F/several.jsonl";
static void test_several_images(void) {
    static const struct { const char *record, *words; } bad[] = {
        {"{\"image\": \"a.png\", \"images\": [\"b.png\"], \"question\": \"q\"}", "it has \"image\" and \"images\": put all into \"images\""},
        {"{\"images\": \"b.png\", \"question\": \"q\"}", "\"images\" must be an array of strings"},
        {"{\"images\": [\"b.png\", 3], \"question\": \"q\"}", "\"images\" must be an array of strings"},
        {"{\"images\": [\"b.png\"], \"question\": \"q\", \"content\": [{\"image\": 0}]}", "no \"question\" in the record"},
        {"{\"images\": [\"b.png\", \"c.png\"], \"content\": [{\"text\": \"q\"}, {\"image\": 0}]}", "each image once"},
        {"{\"images\": [\"b.png\", \"c.png\"], \"content\": [{\"image\": 1}, {\"image\": 0}]}", "N from 0 in order"},
        {"{\"images\": [\"b.png\", \"c.png\"], \"question\": \"q\", \"image_places\": [1, 0]}", "ascending byte offsets into the question"},
    };
    document d;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check_case("invalid images of a record: %s", bad[i].words);
        put_file("/several.jsonl", bad[i].record);
        CHECK_INT(cli(SEVERAL_COMMAND), 3);
        CHECK(last.err && strstr(last.err, bad[i].words));
    }
    check_case("sweep: several images per record, before and within the text, next to records with one and with none");
    put_file("/several.jsonl",
             "{\"images\": [\"mix-200x150.png\", \"waves-90x60.png\"], \"question\": \"What differs?\", \"answers\": [\"x\"]}\n"
             "{\"image\": \"mix-200x150.png\", \"question\": \"What?\", \"answers\": [\"x\"]}\n"
             "{\"images\": [\"waves-90x60.png\", \"rings-61x130.png\", \"mix-200x150.png\"], \"content\": [{\"text\": \"First \"}, {\"image\": 0}, "
             "{\"text\": \"then \"}, {\"image\": 1}, {\"text\": \"and \"}, {\"image\": 2}, {\"text\": \"what comes next?\"}], \"answers\": [\"x\"]}\n"
             "{\"question\": \"What?\", \"answers\": [\"x\"]}\n{\"images\": [\"mix-200x150.png\", \"gone.png\"], \"question\": \"What?\"}\n");
    cli(SEVERAL_COMMAND);
    if (!CHECK(load(&d, in_folder("several/several_imgsizeasis_topk0_blocks4.json")))) return;
    uint32_t row = several_row(&d, 0);
    CHECK(is(&d, member(&d, row, "prompt"), "<|im_start|>User:<image><image>What differs?<end_of_utterance>\nAssistant:"));
    CHECK_INT(d.nodes[member(&d, row, "vision_tokens_of_images")].count, 2);
    row = several_row(&d, 1);
    CHECK(member(&d, row, "vision_tokens_of_images") == VP_JSON_NONE && member(&d, row, "num_images") == VP_JSON_NONE);
    row = several_row(&d, 2);
    CHECK(is(&d, member(&d, row, "prompt"), "<|im_start|>User: First <image>then <image>and <image>what comes next?<end_of_utterance>\nAssistant:"));
    CHECK_INT(d.nodes[member(&d, row, "vision_tokens_of_images")].count, 3);
    CHECK(is(&d, member(&d, several_row(&d, 4), "status"), "failed"));
    CHECK(!is(&d, member(&d, several_row(&d, 3), "status"), "failed")); /* a record without an image is measured as text */
    unload(&d);
    CHECK_INT(cli("report %F/several"), 0);
    CHECK(last.out && strstr(last.out, "2 of 4 measured samples have several images, up to 3"));
    CHECK_INT(cli("data %F/several.jsonl --image_dir tests/golden/othermodels/images"), 0);
    CHECK(last.out && strstr(last.out, "trouble   1 sample has no picture and will be measured as text only; the first: line 4\n"));
    check_case("data: tokens of each image by a family's rule, and the positions of images in the text");
    CHECK_INT(cli("data %F/several.jsonl --image_dir tests/golden/othermodels/images --family qwen2-vl --json"), 0);
    CHECK(last.out && strstr(last.out, "\"image_tokens_by_rule\": [35, 6]") && strstr(last.out, "{\"text\": \"then \"}, {\"image\": 1}"));
    check_case("a model that takes one image fails samples with several, with the reason");
    cli("sweep --synthetic tiny --tier_list low --max_new_tokens 1 --num_samples 9 --num_runs_per_sample 1 --threads 1 --image_dir "
        "tests/golden/othermodels/images --output_dir %F/several --data %F/several.jsonl");
    CHECK(last.err && strstr(last.err, "2 images, but at most one is possible: Molmo's published preprocessing accepts only one image per prompt"));
}
static void test_sweep(void) {
    static const char command[] = "sweep --synthetic tiny --tier_list low --max_new_tokens 2 --num_samples 9 --num_runs_per_sample 1 --threads 1 "
                                  "--num_active_blocks_list 2 --top_k_list 2 --quiet --output_dir %F/swept --data ";
    char line[600];
    document d;
    int ok = 0, failed = 0;
    check_case("sweep --data: rows of a table, a damaged row, a row with two pictures");
    put_file("/rows.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"What?\"}]}\nnot JSON\n{\"messages\": [{\"role\": \"user\", \"content\": ["
             "{\"type\": \"image_url\", \"image_url\": {\"url\": \"file://a.png\"}}, {\"type\": \"image_url\", \"image_url\": {\"url\": \"file://a.png\"}}]}]}\n");
    snprintf(line, sizeof line, "%s%s", command, "%F/rows.jsonl");
    cli(line);
    CHECK(last.code == 0 || last.code == 1);
    if (!CHECK(load(&d, only_result("swept")))) return;
    uint32_t rows = member(&d, 0, "per_sample_results");
    for (uint32_t i = rows + 1; i < d.nodes[rows].end; i = d.nodes[i].end) {
        ok += is(&d, member(&d, i, "status"), "ok");
        failed += is(&d, member(&d, i, "status"), "failed");
    }
    CHECK_INT(ok, 1);
    CHECK_INT(failed, 2);
    unload(&d);
    test_several_images();
    check_case("sweep: all parts of a set in one folder form one data set, which a message reports");
    CHECK_INT(cli("sweep --synthetic tiny --tier_list low --max_new_tokens 1 --num_samples 1 --num_runs_per_sample 1 --threads 1 --num_active_blocks_list 2 "
                  "--top_k_list 2 --output_dir %F/parts --data tests/golden/datasets/hf_parquet"), 0);
    CHECK(last.err && strstr(last.err, "19 files are used as one data set, among them tests/golden/datasets/hf_parquet/ai2d_test.parquet and "));
    CHECK_INT(cli("sweep --synthetic tiny --tier_list low --max_new_tokens 1 --num_samples 1 --num_runs_per_sample 1 --threads 1 --num_active_blocks_list 2 "
                  "--top_k_list 2 --output_dir %F/shards --data tests/golden/datasets/arrow/saved"), 0);
    CHECK(last.err && !strstr(last.err, "used as one data set"));
    check_case("report: the reason why a row failed, in text and on the page");
    CHECK_INT(cli("report %F/swept"), 0);
    CHECK(last.out && strstr(last.out, "2 points failed") && strstr(last.out, "; the first: ") && strstr(last.out, "row 2: it is not JSON: "));
    CHECK_INT(cli("report --html %F/swept"), 0);
    CHECK(last.out && strstr(last.out, "row 2: it is not JSON: "));
}
/* the parts of a set with their own prompts: lmms-eval 75571cfe (tasks/mmmu_pro, mathvista, coco_cap), VLMEvalKit e8e78f05 (image_mcq.py, image_caption.py) */
static void test_variants(void) {
    static const char last_line[] = "The last line of your response should be of the following format: 'Answer: $LETTER' (without quotes) where LETTER is one of ";
    static const struct { const char *options, *file, *prompt; } asked[] = {
        {"--dataset_name mmmu_pro_vision_cot", "hf_parquet/mmmu_pro_vision_test.parquet",
         "\"question\": \"Write out the multiple-choice question in the image and then solve it. %soptions. Think step by step before answering.\""},
        {"--dataset_name mmmu_pro_standard_cot", "hf_parquet/mmmu_pro_standard10_test.parquet",
         "\\n\\nAnswer the following multiple choice question. %soptions. Think step by step before answering.\""},
        {"--dataset_name mathvista_testmini_solution", "hf_parquet/mathvista_testmini.parquet", "\"question\": \"Question: "},
        {"--dataset_name mathvista_testmini_solution", "hf_parquet/mathvista_testmini.parquet", ", at the end.\\nSolution:\""},
        {"--dataset_name mathvista_testmini_cot", "hf_parquet/mathvista_testmini.parquet", "\\nHint: Please answer the question "},
        {"--prompt_origin vlmevalkit", "hf_parquet/mmmu_pro_standard10_test.parquet", "Answer directly with the option letter from the given choices. \""},
        {"--prompt_origin vlmevalkit --dataset_name MMMU_Pro_V", "hf_parquet/mmmu_pro_vision_test.parquet",
         "\"question\": \"Answer the following multiple-choice question in the image. Answer directly with the option letter from the given choices. \""},
        {"--prompt_origin vlmevalkit --dataset_name MMMU_Pro_V_COT", "hf_parquet/mmmu_pro_vision_test.parquet",
         "question in the image. %sthe options. Think step by step before answering. \""}};
    char line[300], wanted[400];
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        check_case("data %s", asked[i].options);
        snprintf(line, sizeof line, "data --json %s tests/golden/datasets/%s", asked[i].options, asked[i].file);
        {
            const char *gap = strstr(asked[i].prompt, "%s");
            if (gap) snprintf(wanted, sizeof wanted, "%.*s%s%s", (int)(gap - asked[i].prompt), asked[i].prompt, last_line, gap + 2);
            else snprintf(wanted, sizeof wanted, "%s", asked[i].prompt);
        }
        CHECK_INT(cli(line), 0);
        CHECK(last.out && strstr(last.out, wanted));
    }
    check_case("data: captions of VLMEvalKit's table need no question");
    put_file("/COCO_VAL.tsv", "index\timage_path\tanswer\n0\tpic0.png\t['a dog', 'one dog']\n");
    CHECK_INT(cli("data --json --image_dir tests/golden/datasets/vlmevalkit_tsv %F/COCO_VAL.tsv"), 0);
    CHECK(last.out && strstr(last.out, "\"question\": \"Please describe this image in general.") && strstr(last.out, "[\"a dog\", \"one dog\"]") &&
          strstr(last.out, "\"metric\": \"captions\""));
}
/* ---- categories and totals in a report */
#define ANSWER(id, right, pred, answer, more) \
    "{\"sample_id\": " id ", \"T_total\": 5" id ", \"accuracy\": " right ", \"pred\": \"" pred "\", \"metadata\": {\"answer\": \"" answer "\", " more "}}"
static void put_result(const char *name, const char *metric, const char *rows) {
    char path[100], text[3000];
    snprintf(path, sizeof path, "/reported/%s_imgsizetier-low_crops2_topk4_blocks12.json", name);
    snprintf(text, sizeof text, "{\"dataset_name\": \"%s\", \"accuracy_metric\": \"%s\", \"top_k\": 4, \"num_active_blocks\": 12, "
             "\"per_sample_results\": [%s]}", name, metric, rows);
    put_file(path, text);
}
static void test_categories(void) {
    document d;
    CHECK_INT(mkdir(in_folder("reported"), 0700), 0);
    put_result("mme", "mme_lmms", ANSWER("1", "1", "yes", "Yes", "\"category\": \"OCR\", \"images_sha256\": [\"a\"]") ","
               ANSWER("2", "1", "No", "No", "\"category\": \"OCR\", \"images_sha256\": [\"a\"]") ","
               ANSWER("3", "1", "yes", "Yes", "\"category\": \"scene\", \"images_sha256\": [\"b\"]") ","
               ANSWER("4", "0", "yes", "No", "\"category\": \"scene\", \"images_sha256\": [\"b\"]") ","
               ANSWER("5", "1", "no", "No", "\"category\": \"text_translation\", \"images_sha256\": [\"c\"]") ","
               ANSWER("6", "1", "yes", "Yes", "\"category\": \"text_translation\", \"images_sha256\": [\"c\"]"));
    put_result("pope", "pope_official", ANSWER("1", "1", "Yes.", "yes", "\"category\": \"random\"") "," ANSWER("2", "0", "Yes.", "no", "\"category\": \"random\"") ","
               ANSWER("3", "1", "No, it is", "no", "\"category\": \"popular\""));
    put_result("MMBench_DEV_EN", "mcq_circular_vlmevalkit", ANSWER("1", "1", "A", "A", "\"id\": 1, \"category\": \"x\"") ","
               ANSWER("2", "0", "A", "B", "\"id\": 1000001, \"category\": \"x\"") "," ANSWER("3", "1", "A", "A", "\"g_index\": \"2\", \"id\": 9, \"category\": \"y\""));
    check_case("report --by category: rows of categories, and totals of MME, POPE and circular rows");
    CHECK_INT(cli("report --by category %F/reported"), 0);
    CHECK(last.out && strstr(last.out, "questions with all rows right") && strstr(last.out, "Accuracy by category"));
    CHECK_INT(cli("report --by category --json %F/reported"), 0);
    if (CHECK(last.out && parse(&d, last.out, strlen(last.out)))) {
        const uint32_t e2 = member(&d, 0, "e2_pareto_coupling");
        static const struct { const char *list, *name; int place; double value, low, high; } wanted[] = {
            {"totals", "questions with all rows right", 0, 0.5, 0, 1},
            {"totals", "perception", 1, 250, 250, 250}, /* 100 + 100 of OCR, 50 + 0 of scene */
            {"totals", "cognition", 2, 200, 200, 200}, {"totals", "total", 3, 450, 450, 450},
            {"totals", "accuracy", 4, 2.0 / 3, 0, 1}, {"totals", "f1", 7, 2.0 / 3, NAN, NAN}, {"totals", "yes_ratio", 8, 2.0 / 3, 0, 1},
            {"categories", "scene", 3, 0.5, 0.0945312057342307, 0.9054687942657693}};
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            const int is_total = wanted[i].list[0] == 't';
            const uint32_t row = vp_json_at(&d.json, member(&d, e2, wanted[i].list), (uint32_t)wanted[i].place),
                           ends = member(&d, row, is_total ? "interval" : "accuracy_interval");
            double low = NAN, high = NAN;
            vp_json_to_double(&d.json, vp_json_at(&d.json, ends, 0), &low);
            vp_json_to_double(&d.json, vp_json_at(&d.json, ends, 1), &high);
            check_note(is(&d, member(&d, row, is_total ? "total" : "category"), wanted[i].name) &&
                       fabs(number(&d, row, is_total ? "value" : "accuracy") - wanted[i].value) < 1e-12 &&
                       (isnan(wanted[i].low) ? isnan(low) : fabs(low - wanted[i].low) < 1e-9 && fabs(high - wanted[i].high) < 1e-9),
                       __FILE__, __LINE__, "%s %s: %g [%g, %g]", wanted[i].list, wanted[i].name, number(&d, row, is_total ? "value" : "accuracy"), low, high);
        }
        free(d.nodes);
    }
    CHECK_INT(cli("report --by category --html %F/reported"), 0);
    CHECK(last.out && strstr(last.out, "<section id=\"categories\">") && strstr(last.out, "questions with all rows right"));
    check_case("report --by: a field that no record has");
    CHECK_INT(cli("report --by nothing %F/reported"), 2);
    CHECK(last.err && strstr(last.err, "no scored sample has this field in its record; the fields are "));
}
int main(void) {
    if (!command_begin("data")) return 1;
    int shared = has_shared();
    test_formats(shared);
    test_parquet();
    test_parquet_order();
    test_arrow();
    test_hostile();
    test_references();
    test_columns();
    test_errors();
    test_output();
    test_scores(shared);
    test_groups();
    test_answers();
    test_found_answers();
    test_names();
    test_small();
    test_pictures();
    test_sweep();
    test_categories();
    test_variants();
    return command_end("test_data");
}
