/* test_command_tile.c: the tile command: output formats, rejections. test_tiler.c has the goldens, test_texts.c the columns.
 * Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "support/command.h"
#include "vlmprof.h"

static void test_tile(void) {
    const char *image = check_golden("images/img-640x300.png");
    char command[600];
    document d;
    check_case("tile: files, JSON, exact crops");
    CHECK_INT((snprintf(command, sizeof command, "tile %s --json", image), cli(command)), 0);
    if (CHECK(last.out && parse(&d, last.out, last.out_bytes))) {
        CHECK_INT(number(&d, vp_json_at(&d.json, 0, 0), "width"), 640);
        CHECK_INT(number(&d, vp_json_at(&d.json, 0, 0), "features"), 144 + 12 * 28);
        CHECK(is_null(&d, vp_json_at(&d.json, 0, 0), "error"));
        free(d.nodes);
    }
    CHECK_INT((snprintf(command, sizeof command, "tile 640x480 %s --csv", image), cli(command)), 0);
    CHECK(last.out && strstr(last.out, image)); /* a file among sizes is listed under its name */
    EXITS(cli("tile 640x480 --crops 6 --preprocess adaptive-fill --csv"), 0, out, "\n640,480,6,2,3,7,1008,704,");
    EXITS(cli("tile 640x480 --vision_tokens 1008"), 0, out, "784x560");
    CHECK_INT(cli("tile 1x5000 1000000x1 --tier medium"), 0); /* fill modes do not reject extreme sizes */
    check_case("tile: rejections");
    REFUSED("tile", 2, "--sizes");
    REFUSED("tile 12x", 2, "WIDTHxHEIGHT");
    REFUSED("tile 0x5", 2, "1 to 2147483647");
    REFUSED("tile 1x5000", 2, "1x5000");
    REFUSED("tile 640x", 2, "\"640x\" is not an image size");
    REFUSED("tile 640*480", 2, "\"640*480\" is not an image size; expected WIDTHxHEIGHT in pixels");
    REFUSED("tile no-such-file.png", 3, "no-such-file.png");
    REFUSED("tile 640x480 --csv --json", 2, "cannot be used together");
    REFUSED("tile 640x480 --preprocess tier", 2, "--tier");
    CHECK_INT(cli("tile 640x480 12x 0x5 --csv"), 3); /* a rejected size among several is a row */
    CHECK(last.out && strstr(last.out, "\n640,480,12,2,3,7,704,") && strstr(last.out, "\"\"12x\"\" is not an image size") && last.err_lines == 1);
    CHECK_INT(cli_with("tile --sizes - --json", "640x480\n\nnonsense\n320 240\n", in_folder("stdout"), 0), 3);
    if (CHECK(last.out && parse(&d, last.out, last.out_bytes))) {
        CHECK_INT(d.nodes[0].count, 3);
        CHECK(!is_null(&d, vp_json_at(&d.json, 0, 1), "error") && is_null(&d, vp_json_at(&d.json, 0, 1), "rows"));
        CHECK_INT(number(&d, vp_json_at(&d.json, 0, 2), "height"), 240);
        free(d.nodes);
    }
    if (access("/dev/full", W_OK) == 0) {
        CHECK_INT(cli_with("tile 640x480", NULL, "/dev/full", 0), 5);
        CHECK_INT(last.err_lines, 1);
    }
}

/* every format that is decoded has a size, turned upright as its EXIF says; what a folder leaves out is counted */
static void test_formats(void) {
    static const unsigned char turned[] = "RIFF\x42\0\0\0WEBPVP8X\x0a\0\0\0\x08\0\0\0\x34\0\0\x24\0\0"             /* 53 x 37 */
                                          "EXIF\x20\0\0\0Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"; /* orientation 6 */
    static const unsigned char code_size[] = "GIF89a\x02\0\x02\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x02\0\x02\0\0\x28\x01\0\0;";
    check_case("tile: WebP and GIF, files of a folder that are left out");
    EXITS(cli("tile tests/golden/datasets/pictures/w0.webp --csv"), 0, out, "w0.webp");
    EXITS(cli("tile --family qwen2-vl tests/golden/datasets/pictures/g1.gif"), 0, out, "g1.gif");
    CHECK_INT(mkdir(in_folder("mixed"), 0777), 0);
    write_file(in_folder("mixed/turned.webp"), turned, sizeof turned - 1);
    write_text(in_folder("mixed/b.bmp"), "");
    write_text(in_folder("mixed/a.txt"), "");
    write_text(in_folder("mixed/.hidden"), "");
    EXITS(cli("tile --family qwen2-vl %F/mixed"), 0, out, "\n37x53 ");
    CHECK(last.err && strstr(last.err, "skipped 2 files that are not named as a PNG, JPEG, GIF or WebP: a.txt, .."));
    write_file(in_folder("code.gif"), code_size, sizeof code_size - 1);
    REFUSED("run %F/code.gif -p What --synthetic tiny", 3, "truncated or damaged GIF");
}

static void test_families(void) {
    check_case("tile --family: a column that has no value, limits that cannot be found");
    EXITS(cli("tile --family mllama 1920x1080 --json"), 0, out, "\"total_tokens\": 1");
    EXITS(cli("tile --family aria 5x5 --json"), 0, out, "\"rows\": null");
    EXITS(cli("tile --family qwen2-vl --max_tokens 100 samples"), 0, out, "95 % of 10 images");
    REFUSED("tile --family aria --max_tokens 9 5x5", 1, "no key that limits");
    check_case("tile --family: rejections");
    REFUSED("tile --family qwen2-vl 1x5000", 2, "more than a factor of 200");
    REFUSED("tile --family qwen2-vl", 2, "tile needs sizes");
    REFUSED("tile qwen2-vl 640x480", 2, "\"qwen2-vl\" is a model family, not an image: use --family qwen2-vl");
    REFUSED("tile --family internvl --max_patch 6 5x5", 2, "the nearest is max_patches");
    REFUSED("tile --family internvl --max_patches", 2, "needs a value");
    REFUSED("tile --family internvl --max_patches 0 5x5", 2, "out of range");
    REFUSED("tile --family internvl --max_patches 6 --max_patches 7 5x5", 2, "given twice");
    REFUSED("tile --family internvl --compare qwen2-vl 5x5", 2, "cannot be used together");
    REFUSED("tile --maxcrops 3 5x5", 2, "did you mean --max_crops?");
    REFUSED("tile --max_tokens 5 5x5", 2, "needs --family");
    REFUSED("tile --checkpoint samples 5x5", 3, "neither preprocessor_config.json");
}

int main(void) {
    if (!command_begin("command_tile")) return 1;
    test_tile();
    test_formats();
    test_families();
    return command_end("test_command_tile");
}
