/* test_locale.c: in a program that uses the user's locale, where 1.5 is written 1,5, the headers read and write numbers as usual. The program itself never sets it
 * (tests/strange_machines.sh). */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof_families.h"
#include "vlmprof_noise.h"
#include "support/check.h"
#include "support/folder.h"
#include <locale.h>

static int has_comma(void) { return !strcmp(localeconv()->decimal_point, ","); }
/* Sets a locale with a decimal comma: the user's, or one created here. */
static int take_comma(void) {
    if (setlocale(LC_ALL, "") && has_comma()) return 1;
    setenv("LOCPATH", folder, 1);
    return !system("localedef -i de_DE -f ISO-8859-1 \"$TEST_FOLDER/de_DE\" >\"$TEST_FOLDER/said\" 2>&1") && setlocale(LC_ALL, "de_DE") && has_comma();
}
static void test_json(void) {
    static const char text[] = "[1.5, -2.5e-3]";
    char out[64];
    vp_json_writer writer;
    vp_json_node nodes[4];
    vp_json json;
    double value = 0;
    check_case("JSON is written with decimal points");
    vp_json_writer_init(&writer, out, sizeof out, 0);
    vp_json_begin_array(&writer);
    vp_json_double(&writer, 1.5);
    vp_json_double(&writer, 1e-7);
    vp_json_end_array(&writer);
    CHECK_INT(vp_json_finish(&writer), VP_OK);
    CHECK_TEXT(out, "[1.5, 1e-07]");
    check_case("JSON is read with decimal points");
    CHECK_INT(vp_json_parse(text, sizeof text - 1, nodes, 4, &json, NULL, NULL), VP_OK);
    CHECK_INT(vp_json_to_double(&json, vp_json_at(&json, 0, 0), &value), VP_OK);
    CHECK_NEAR(value, 1.5, 0);
    CHECK_INT(vp_json_to_double(&json, vp_json_at(&json, 0, 1), &value), VP_OK);
    CHECK_NEAR(value, -0.0025, 0);
}
static void test_words(void) {
    vp_noise_reading reading;
    static vp_family family;
    check_case("numbers of families and the system use decimal points");
    vp_family_default(vp_family_find("gemma3"), &family);
    CHECK_INT(vp_family_set(&family, "min_ratio_to_activate", "1.25", NULL), VP_OK);
    CHECK_NEAR(family.ratio, 1.25, 0);
    put_file("/proc/loadavg", "1.68 0.17 0.37 1/88 31755\n");
    vp_noise_read(folder, &reading);
    CHECK_NEAR(reading.load, 1.68, 0);
}
int main(void) {
    if (!folder_make("locale")) return 1;
    if (!take_comma()) check_skip("a locale with a decimal comma", "the user has none, and localedef made none");
    else {
        test_json();
        test_words();
    }
    remove_folder(folder);
    return check_done("test_locale");
}
