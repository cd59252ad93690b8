/* test_document.c: documents as text, compared as whole texts; numbers as text at each limit of their format; CSV. */
#define _POSIX_C_SOURCE 200809L
#include "base/document.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/room.h"

static void fill(struct document *document) {
    struct text_list texts = {NULL, 0}, *cells;
    document_text(document, BLOCK_LINE, "first %d", 1);
    document_text(document, BLOCK_LINE, "second");
    document_list(document, "Nothing", &texts);
    text_list_copy(&texts, "one note");
    text_list_copy(&texts, "two notes");
    document_list(document, "Notes", &texts);
    document_text(document, BLOCK_HEADING, "Table");
    cells = document_table(document, "name|n|long head");
    text_list_copy(cells, "\xc3\xa9t\xc3\xa9"); /* three characters, five bytes */
    text_list_copy(cells, "12345");
    text_list_copy(cells, "1");
    text_list_copy(cells, "b");
    text_list_copy(cells, "");
    text_list_copy(cells, "22");
    cells = document_table(document, "alone");
    text_list_copy(cells, "x");
    text_list_free(&texts);
}
static void test_document(void) {
    struct document document = {NULL, 0, NULL};
    struct text_buffer out = {NULL, 0, 0};
    fill(&document);
    check_case("a document as text: names left-aligned, numbers right-aligned, a blank line between blocks");
    document_print(&document, &out);
    CHECK_TEXT(out.data, "  first 1\n  second\n\nNotes\n\n  one note\n  two notes\n\nTable\n\n"
                         "  name      n  long head\n  \xc3\xa9t\xc3\xa9   12345          1\n  b                   22\n\n  alone\n  x\n");
    check_case("... on stdout");
    fflush(stdout);
    int kept = dup(1);
    CHECK(freopen(in_folder("out"), "w", stdout) != NULL);
    out.bytes = 0;
    document_print(&document, &out);
    CHECK_INT(print_document(&document), 0);
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    char *text = check_read(in_folder("out"), NULL);
    CHECK_TEXT(text, out.data);
    CHECK_INT(document.count, 0); /* it was freed */
    FREE_ALL(text, out.data);
    check_case("columns of text");
    CHECK_INT(text_width(""), 0);
    CHECK_INT(text_width("abc"), 3);
    CHECK_INT(text_width("\xe2\x82\xac\xf0\x9f\x98\x80!"), 3);
}
/* names of tasks and files may come from untrusted data */
static void test_hostile(void) {
    struct document document = {NULL, 0, NULL};
    struct text_buffer out = {NULL, 0, 0};
    document_text(&document, BLOCK_LINE, "<img src=x> | `id` & ![x](http://a) \\|");
    text_list_copy(document_table(&document, "a|b"), "x|y");
    text_list_copy(&document.blocks[1].cells, "\x1b]0;t\x07\xe2\x80\xae\xc2\x85!");
    check_case("a document on a terminal: control characters become ?");
    document_print(&document, &out);
    CHECK_TEXT(out.data, "  <img src=x> | `id` & ![x](http://a) \\|\n\n  a            b\n  x|y  ?]0;t?\?\?!\n");
    document_free(&document);
    free(out.data);
}
static void test_numbers(void) {
    static const struct { double value; const char *text; } rows[] = {
        {0, "0"}, {-0.0, "0"}, {1234.5, "1234"}, {1000, "1000"}, {999.96, "1000.0"}, {100, "100.0"}, {99.999, "100.00"}, {10, "10.00"}, {9.9999, "10.000"}, {1, "1.000"},
        {0.01, "0.010"}, {0.00999, "9.99e-03"}, {-5.5, "-5.500"}, {-12345.6, "-12346"}, {-1e-9, "-1.00e-09"}, {(double)NAN, "-"}, {(double)INFINITY, "-"}};
    check_case("a number has about four digits");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) CHECK_TEXT(number_short(rows[i].value).text, rows[i].text);
    check_case("shares, intervals and estimates");
    CHECK_TEXT(number_percent(0.1234).text, "12.3");
    CHECK_TEXT(number_percent((double)NAN).text, "-");
    CHECK_TEXT(number_formatted("%.1f!", 2.25).text, "2.2!");
    CHECK_TEXT(number_share(0.83).text, "83.0 %");
    CHECK_TEXT(number_share(1).text, "100.0 %");
    CHECK_TEXT(number_share(1.2345).text, "1.23 times");
    CHECK_TEXT(number_share(12.6).text, "13 times");
    CHECK_TEXT(number_share((double)NAN).text, "-");
    CHECK_TEXT(number_estimate(1, 2.3, 1.2, 3.4).text, "2.3 [1.2, 3.4]");
    CHECK_TEXT(number_estimate(100, 0.5, 0.2, 0.6).text, "50 [20, 60]");
    CHECK_TEXT(number_estimate(-1, 2, 4, -300).text, "-2.0 [-4.0, 300.0]");
    CHECK_TEXT(number_estimate(1, 7, (double)NAN, (double)NAN).text, "7.00");
    CHECK_TEXT(number_change(1, 2.31, -1.24, 5.86).text, "+2.3 [-1.2, +5.9]");
    CHECK_TEXT(number_change(1, -2.31, -5.86, -1.24).text, "-2.3 [-5.9, -1.2]");
    CHECK_TEXT(number_change(1, 7, (double)NAN, (double)NAN).text, "+7.00");
    CHECK_TEXT(number_change(1, (double)NAN, (double)NAN, (double)NAN).text, "-");
    CHECK_TEXT(number_value(38.2994, 36.0271, 41.218).text, "38.3");
    check_case("measured numbers: no digits below the spread, three if the spread is unknown");
    CHECK_TEXT(number_measured(38.2994, 36.0271, 41.218).text, "38.3 [36.0, 41.2]");
    CHECK_TEXT(number_measured(0.32243, 0.30917, 0.36004).text, "0.322 [0.309, 0.360]");
    CHECK_TEXT(number_measured(2211.7, 1203.2, 3699.9).text, "2200 [1200, 3700]");
    CHECK_TEXT(number_measured(2.04, 1.85, 28.109).text, "2.0 [1.9, 28.1]");
    CHECK_TEXT(number_measured(0, -0.25, 30).text, "0 [0, 30]");
    CHECK_TEXT(number_measured(0, 0, 0.3244).text, "0.00 [0.00, 0.32]");
    CHECK_TEXT(number_measured(1e-9, 0, 30).text, "0.00 [0.00, 30.00]");
    CHECK_TEXT(number_measured(4.9, 4.8, 14.8).text, "4.9 [4.8, 14.8]");
    CHECK_TEXT(number_measured(0.99992, 0.99989, 0.99994).text, "0.999920 [0.999890, 0.999940]");
    CHECK_TEXT(number_measured(43.356, (double)NAN, (double)NAN).text, "43.4");
    CHECK_TEXT(number_measured(0.0032764, (double)NAN, (double)NAN).text, "0.00328");
    CHECK_TEXT(number_measured(13234, (double)NAN, (double)NAN).text, "13200");
    CHECK_TEXT(number_measured(100, 100, 100).text, "100");
    CHECK_TEXT(number_measured(0.6, 0.59999999, 0.60000001).text, "0.600");
    CHECK_TEXT(number_measured(0, 0, 0).text, "0");
    CHECK_TEXT(number_measured((double)NAN, 1, 2).text, "- [1.00, 2.00]");
    CHECK_TEXT(number_measured((double)NAN, (double)NAN, (double)NAN).text, "-");
    CHECK_TEXT(number_measured(1e300, 1, (double)INFINITY).text, number_measured(1e300, 2, 1).text);
}
static void test_csv(void) {
    static const char *const rows[][2] = {{"plain", "plain"}, {"", ""}, {"a,b", "\"a,b\""}, {"a\"b", "\"a\"\"b\""}, {"a\nb", "a?b"}, {"a\rb", "a?b"},
                                          {"a b;c", "a b;c"}};
    static const char *const hostile[][2] = {
        {"=1+1", "'=1+1"}, {"+cmd", "'+cmd"}, {"-2+3", "'-2+3"}, {"@SUM(A1)", "'@SUM(A1)"}, {"=a,b", "\"'=a,b\""}, {"-12.5e-3", "-12.5e-3"}, {"+7", "+7"},
        {"-", "'-"}, {"a=b", "a=b"}, {"a\x1b[31mb", "a?[31mb"}, {"a\xc2\x9b" "b", "a?b"}, {"a\xe2\x80\xaetxt.exe", "a?txt.exe"}, {"\xff", "?"}};
    struct text_buffer out = {NULL, 0, 0};
    check_case("CSV: quotes only if needed, an empty field for NaN and infinity");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        text_add(&out, "", 0);
        out.bytes = 0;
        csv_text(&out, rows[i][0]);
        if (!rows[i][0][0]) text_add(&out, "", 0);
        CHECK_TEXT(out.data, rows[i][1]);
    }
    check_case("CSV: formulas for spreadsheets and control characters are defused; numbers stay numbers");
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        out.bytes = 0;
        csv_text(&out, hostile[i][0]);
        CHECK_TEXT(out.data, hostile[i][1]);
    }
    out.bytes = 0;
    csv_number(&out, 0.1);
    csv_number(&out, -3);
    csv_number(&out, 1e300);
    CHECK_TEXT(out.data, ",0.1,-3.0,1e+300");
    free(out.data);
}

int main(void) {
    if (!folder_make("document")) return 1;
    RUN_TESTS(test_document, test_hostile, test_numbers, test_csv);
    return room_end("test_document");
}
