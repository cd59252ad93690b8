/* test_endpoint.c: the content sent to a server: kinds of picture files, PNG files that decode to the same pixels, and the grammar of --request_knob. */
#define _POSIX_C_SOURCE 200809L
#include "commands/settings.h"
#include "server/endpoint.h"
#include "server/request_knobs.h"
#include "server/picture.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/room.h"

/* ---- pictures */
static uint8_t *noise_pixels(int32_t width, int32_t height) {
    const size_t count = (size_t)width * (size_t)height * 3;
    uint8_t *rgb = malloc(count);
    uint32_t state = 7;
    for (size_t i = 0; i < count; i++) rgb[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
    return rgb;
}
static int decode(const struct picture *picture, vp_image *image) {
    return vp_image_decode((const uint8_t *)picture->bytes, picture->byte_count, image, NULL) == VP_OK;
}
static void test_png(void) {
    static const int32_t sizes[][2] = {{1, 1}, {3, 2}, {640, 480}, {1, 700}, {701, 1}};
    check_case("pixels as a PNG file decode to the same pixels");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int32_t width = sizes[i][0], height = sizes[i][1];
        uint8_t *rgb = noise_pixels(width, height);
        struct picture picture;
        vp_image image = {0, 0, NULL};
        picture_of_pixels(rgb, width, height, &picture);
        CHECK_TEXT(picture.media_type, "image/png");
        CHECK_TEXT(media_type_of(picture.bytes, picture.byte_count), "image/png");
        CHECK(picture.width_px == width && picture.height_px == height);
        CHECK(decode(&picture, &image));
        CHECK(image.width_px == width && image.height_px == height && !memcmp(image.rgb, rgb, (size_t)width * (size_t)height * 3));
        vp_image_free(&image);
        picture_free(&picture);
        CHECK(!picture.bytes && !picture.byte_count);
        free(rgb);
    }
}
/* A file marked with a number, malloc'ed, and its pixels. */
static char *marked(const struct unique *unique, uint64_t number, vp_image *image) {
    char *file = malloc(unique->picture.byte_count);
    memcpy(file, unique->picture.bytes, unique->picture.byte_count);
    unique_mark(unique, number, file + unique->from);
    *image = (vp_image){0, 0, NULL};
    CHECK_INT(vp_image_decode((const uint8_t *)file, unique->picture.byte_count, image, NULL), VP_OK);
    return file;
}
static size_t values_that_differ(const vp_image *one, const vp_image *other, int *most) {
    size_t count = 0;
    if (!CHECK(one->width_px == other->width_px && one->height_px == other->height_px)) return 0;
    for (size_t i = 0; i < (size_t)one->width_px * (size_t)one->height_px * 3; i++) {
        const int off = abs(one->rgb[i] - other->rgb[i]);
        count += off > 0;
        if (off > *most) *most = off;
    }
    return count;
}
static int differ(const vp_image *one, const vp_image *other) {
    return CHECK(one->width_px == other->width_px && one->height_px == other->height_px)
           && memcmp(one->rgb, other->rgb, (size_t)one->width_px * (size_t)one->height_px * 3) != 0;
}
/* Two numbers that differ in one of the first `bits` bits give different pixels; so do random numbers. */
static void check_numbers(const struct unique *unique, int bits) {
    enum { NUMBERS = 12 };
    vp_image plain, images[NUMBERS];
    char *files[NUMBERS], *file = marked(unique, 0, &plain);
    for (int bit = 0; bit < bits; bit++) {
        vp_image other;
        char *changed = marked(unique, UINT64_C(1) << bit, &other);
        check_note(differ(&plain, &other), __FILE__, __LINE__, "bit %d shows in no pixel", bit);
        CHECK(memcmp(file, changed, unique->picture.byte_count) != 0);
        vp_image_free(&other);
        free(changed);
    }
    for (int i = 0; i < NUMBERS; i++) files[i] = marked(unique, UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(i + 1), &images[i]);
    for (int i = 0; i < NUMBERS; i++) for (int k = 0; k < i && bits > 32; k++) CHECK(differ(&images[i], &images[k]));
    for (int i = 0; i < NUMBERS; i++) { vp_image_free(&images[i]); free(files[i]); }
    vp_image_free(&plain);
    free(file);
}
static void test_unique_png(void) {
    static const int32_t sizes[][2] = {{1, 1}, {1, 5}, {40, 3}, {300, 200}, {22000, 2}, {64, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int is_plain = 0; is_plain < 2; is_plain++) {
            const int32_t width = sizes[i][0], height = sizes[i][1];
            uint8_t *rgb = noise_pixels(width, height);
            struct unique unique;
            vp_image image, pixels = {width, height, rgb};
            int most = 0;
            check_case("%d x %d pixels, %s, as a PNG marked with a number in the lowest bits of its last row", width, height, is_plain ? "plain" : "noise");
            if (is_plain) memset(rgb, 100, (size_t)width * (size_t)height * 3);
            unique_of_pixels(rgb, width, height, &unique);
            check_numbers(&unique, width < 22 ? 3 * width : 64);
            char *file = marked(&unique, UINT64_MAX, &image);
            CHECK(values_that_differ(&pixels, &image, &most) <= 64 && most <= 1);
            CHECK(!memcmp(image.rgb, rgb, (size_t)width * 3 * (size_t)(height - 1)) && image.rgb[(size_t)width * 3 * (size_t)(height - 1)] % 2 == 1);
            vp_image_free(&image);
            free(file);
            unique_free(&unique);
            free(rgb);
        }
}
static void test_unique_jpeg(void) {
    static const char *const paths[] = {"samples/cat.jpg", "samples/astronaut.jpg", "samples/turned-house.jpg", "samples/deep-field.jpg",
                                        "tests/golden/preprocess/images/progressive.jpg"};
    char reason[1000] = "";
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct picture picture;
        struct unique unique;
        vp_image before, after;
        int most = 0;
        check_case("%s stays a JPEG of the same size; each bit of a number changes its pixels, and little else changes", paths[i]);
        CHECK_INT(picture_of_file(paths[i], &picture, reason, sizeof reason), 0);
        CHECK_INT(unique_of_file(paths[i], &unique, reason, sizeof reason), 0);
        CHECK_TEXT(unique.picture.media_type, "image/jpeg");
        CHECK(unique.picture.byte_count == picture.byte_count);
        CHECK(unique.bit_count > 40);
        check_numbers(&unique, (int)unique.bit_count);
        if (decode(&picture, &before)) {
            char *file = marked(&unique, UINT64_C(0xa5a5a5a5a5a5a5a5), &after);
            CHECK(values_that_differ(&before, &after, &most) <= 64 * 64 * 3);
            free(file);
            vp_image_free(&after);
            vp_image_free(&before);
        }
        unique_free(&unique);
        picture_free(&picture);
    }
    check_case("a JPEG without details, or a truncated one, becomes a PNG or is rejected");
    {
        struct unique unique;
        CHECK_INT(unique_of_file("tests/golden/datasets/vllm_custom/v1.jpg", &unique, reason, sizeof reason), 0);
        CHECK_TEXT(unique.picture.media_type, "image/png");
        check_numbers(&unique, 64);
        unique_free(&unique);
    }
}
/* A JPEG file may contain any bytes. Nothing outside the file is read, and each returned bit is inside it. */
static void test_hostile_jpeg(void) {
    size_t bytes = 0;
    char *file = check_read("samples/cat.jpg", &bytes);
    uint32_t state = 3;
    check_case("the bits found in a damaged JPEG are inside it");
    for (int turn = 0; turn < 300; turn++) {
        size_t length = turn < 100 ? bytes * (size_t)turn / 100 : bytes, count;
        uint8_t *damaged = malloc(length + 1);
        struct jpeg_bit *bits = NULL;
        memcpy(damaged, file, length);
        for (int i = 0; i < turn % 50 && length; i++) {
            state = state * 1664525u + 1013904223u;
            damaged[state % (i % 2 ? length : length < 700 ? length : 700)] = (uint8_t)(state >> 24);
        }
        count = jpeg_bits(damaged, length, &bits);
        CHECK(!count || bits[count - 1].at < length); /* bits are in file order */
        FREE_ALL(bits, damaged);
    }
    free(file);
}
static void test_resized(void) {
    uint8_t *rgb = noise_pixels(64, 32);
    vp_image image = {64, 32, rgb}, small, kept;
    struct picture picture;
    char reason[400] = "";
    check_case("a picture resized before it is sent");
    CHECK_INT(picture_resized(&image, 16, 24, &kept, &picture, reason, sizeof reason), 0);
    CHECK(decode(&picture, &small));
    CHECK(small.width_px == 16 && small.height_px == 24 && picture.width_px == 16 && picture.height_px == 24);
    CHECK(kept.width_px == 16 && kept.height_px == 24 && memcmp(kept.rgb, small.rgb, 16 * 24 * 3) == 0); /* the pixels that were sent */
    vp_image_free(&kept);
    vp_image_free(&small);
    picture_free(&picture);
    CHECK_INT(picture_resized(&image, 0, 24, &kept, &picture, reason, sizeof reason), 2);
    CHECK(strstr(reason, "0x24"));
    CHECK_INT(picture_resized(&image, 20000, 20000, &kept, &picture, reason, sizeof reason), 2);
    free(rgb);
}
/* A file with these bytes has this type and size; if type is NULL, it is rejected with these words. */
static void kind(const char *bytes, size_t count, const char *type, int32_t width, int32_t height, const char *words) {
    struct picture picture;
    char reason[400] = "";
    write_file(in_folder("picture"), bytes, count);
    int code = picture_of_file(in_folder("picture"), &picture, reason, sizeof reason);
    CHECK_INT(code, type ? 0 : 3);
    if (!type) check_note(strstr(reason, words) && strstr(reason, "picture"), __FILE__, __LINE__, "\"%s\" is not in \"%s\"", words, reason);
    if (code) return;
    CHECK_TEXT(picture.media_type, type);
    CHECK(picture.width_px == width && picture.height_px == height);
    CHECK(picture.byte_count == count && !memcmp(picture.bytes, bytes, count)); /* the file's own bytes */
    picture_free(&picture);
}
static void test_kinds(void) {
    static const char webp_lossy[] = "RIFF\x1a\0\0\0WEBPVP8 \x0e\0\0\0\x30\x01\0\x9d\x01\x2a\x80\x02\xe0\x01";
    static const char webp_lossless[] = "RIFF\x1a\0\0\0WEBPVP8L\x0e\0\0\0\x2f\x7f\xc2\x77\0\0\0\0\0\0";
    static const char webp_extended[] = "RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\x7f\x02\0\xdf\x01\0";
    static const char gif[] = "GIF89a\x80\x02\xe0\x01\0\0\0";
    struct picture picture;
    char reason[400], *file;
    size_t bytes;
    check_case("files sent unchanged: the type is found from the content, the size from the header");
    kind(webp_lossy, sizeof webp_lossy - 1, "image/webp", 640, 480, NULL);
    kind(webp_lossless, sizeof webp_lossless - 1, "image/webp", 640, 480, NULL);
    kind(webp_extended, sizeof webp_extended - 1, "image/webp", 640, 480, NULL);
    kind(gif, sizeof gif - 1, "image/gif", 640, 480, NULL);
    file = check_read("samples/astronaut.jpg", &bytes);
    CHECK(file != NULL);
    if (file) {
        int32_t width = 0, height = 0;
        vp_image_size((const uint8_t *)file, bytes, &width, &height, NULL);
        kind(file, bytes, "image/jpeg", width, height, NULL);
        kind(file, 2, NULL, 0, 0, "not a PNG, JPEG, WebP or GIF");
    }
    free(file);
    for (size_t cut = 0; cut < sizeof webp_lossy - 1; cut++) kind(webp_lossy, cut, NULL, 0, 0, cut < 12 ? "not a PNG" : "truncated or damaged");
    for (size_t cut = 0; cut < 10; cut++) kind(gif, cut, NULL, 0, 0, cut < 6 ? "not a PNG" : "truncated or damaged");
    kind("GIF89a\0\0\0\0\0\0", 12, NULL, 0, 0, "truncated or damaged"); /* no pixels */
    kind("\x89PNG\r\n\x1a\n", 8, NULL, 0, 0, "");
    kind("BM and so on", 12, NULL, 0, 0, "not a PNG");
    CHECK_INT(picture_of_file(in_folder("none"), &picture, reason, sizeof reason), 3);
    CHECK(strstr(reason, "none"));
}

/* ---- knobs */
static void check_words(const struct request_knobs *knobs, size_t index, const char *want) {
    struct text_buffer text = {NULL, 0, 0};
    knobs_words(knobs, index, &text);
    CHECK_TEXT(text.data ? text.data : "", want);
    free(text.data);
}
/* Adds a knob and compares its values, which are between blanks in `want`, as JSON. */
static void values(const char *text, const char *path, const char *want) {
    struct request_knobs knobs = {NULL, 0};
    struct text_buffer got = {NULL, 0, 0};
    CHECK_INT(knobs_add(&knobs, text), 0);
    CHECK_TEXT(knobs.items[0].path, path);
    for (size_t i = 0; i < knobs.items[0].values.count; i++) {
        text_add_string(&got, i ? " " : "");
        text_add_string(&got, knobs.items[0].values.items[i]);
    }
    CHECK_TEXT(got.data, want);
    free(got.data);
    knobs_free(&knobs);
}
static void test_grammar(void) {
    check_case("values: JSON if they are valid JSON, otherwise texts; commas in brackets and quotes do not split");
    values("a=1", "a", "1");
    values("a.b[0].c=1,2,3", "a.b[0].c", "1 2 3");
    values("image_url.detail=low,high", "image_url.detail", "\"low\" \"high\"");
    values("a=true,null,-1.5e3,x y", "a", "true null -1.5e3 \"x y\"");
    values("a=[1,2],[3,4]", "a", "[1,2] [3,4]");
    values("a={\"x\":[1,{\"y\":2}],\"z\":3},7", "a", "{\"x\":[1,{\"y\":2}],\"z\":3} 7");
    values("a=\"b,c\",d", "a", "\"b,c\" \"d\"");
    values("a=\"quote \\\" , stays\",2", "a", "\"quote \\\" , stays\" 2");
    values("a=\"[\",]", "a", "\"[\" \"]\""); /* a bracket in quotes does not open a list */
    values("a=\"\"", "a", "\"\"");
    values("a=b=c", "a", "\"b=c\"");
    values("a=\\", "a", "\"\\\\\"");
    values("a=007", "a", "\"007\"");
}
static void refused(const char *first, const char *second, const char *words) {
    struct request_knobs knobs = {NULL, 0};
    if (second) CHECK_INT(knobs_add(&knobs, first), 0);
    FAILS(knobs_add(&knobs, second ? second : first), 2, words);
    knobs_free(&knobs);
}
static void test_refused(void) {
    static const char digits[] = "0,1,2,3,4,5,6,7,8,9";
    struct request_knobs knobs = {NULL, 0};
    char text[64];
    check_case("invalid knobs");
    refused("a", NULL, "expected PATH=VALUE");
    refused("=1", NULL, "expected PATH=VALUE");
    refused("", NULL, "expected PATH=VALUE");
    refused("a=", NULL, "a value is empty");
    refused("a=1,,2", NULL, "a value is empty");
    refused("a=1,", NULL, "a value is empty");
    refused("a=[1,2", NULL, "not closed: [1,2");
    refused("a=1,{\"x\":1", NULL, "not closed");
    refused("a=\"b", NULL, "not closed");
    refused("a=1,2,1", NULL, "1 is listed twice");
    refused("a=low,\"low\"", NULL, "listed twice");
    refused("a=1", "a=2", "a is given twice");
    for (char name = 'a'; name < 'f'; name++) {
        snprintf(text, sizeof text, "%c=%s", name, digits);
        CHECK_INT(knobs_add(&knobs, text), 0);
    }
    FAILS(knobs_add(&knobs, "f=1,2"), 2, "more than 100000 combinations");
    knobs_free(&knobs);
}
static void test_combinations(void) {
    struct request_knobs knobs = {NULL, 0};
    vp_chat_knob setting[2];
    check_case("all combinations, with the last knob changing slowest, and their names");
    CHECK_INT(knobs_combinations(&knobs), 1);
    check_words(&knobs, 0, "");
    CHECK_INT(knobs_add(&knobs, "mm_processor_kwargs.max_pixels=1024,2048"), 0);
    CHECK_INT(knobs_add(&knobs, "image_url.detail=low,high,auto"), 0);
    CHECK_INT(knobs_combinations(&knobs), 6);
    check_words(&knobs, 0, "max_pixels=1024 detail=low");
    check_words(&knobs, 4, "max_pixels=2048 detail=high");
    knobs_combination(&knobs, 4, setting);
    CHECK_TEXT(setting[0].path, "mm_processor_kwargs.max_pixels");
    CHECK_TEXT(setting[0].value, "2048");
    CHECK_TEXT(setting[1].value, "\"high\"");
    CHECK_INT(knobs_add(&knobs, "other.detail=1"), 0); /* an equal ending is not a conflict: whole paths are compared */
    check_words(&knobs, 0, "max_pixels=1024 image_url.detail=low other.detail=1");
    knobs_free(&knobs);
    CHECK(!knobs.items && !knobs.count);
}
static const struct option_spec KNOB_OPTIONS[] = {OPTION_REQUEST_KNOB, {"more", FLAG, NULL, NULL, 0, 0, NULL, "h"}};
static const struct command KNOB_COMMAND = {"knobs", "", "", "", 1, KNOB_OPTIONS, 2, NULL, NULL};
static void test_option(void) {
    struct options options;
    struct request_knobs knobs = {NULL, 0};
    check_case("the option: commas, several values, repeated options");
    CHECK_INT(options_of_words(&options, &KNOB_COMMAND, "--request_knob a=1,2 b=[1,2] --more --request_knob=c=x,y"), 0);
    CHECK_INT(knobs_add_all(opt(&options, "request_knob"), &knobs), 0);
    CHECK_INT(knobs.count, 3);
    CHECK_INT(knobs_combinations(&knobs), 4);
    check_words(&knobs, 3, "a=2 b=[1,2] c=y");
    knobs_free(&knobs);
    options_free(&options);
    CHECK_INT(options_of_words(&options, &KNOB_COMMAND, ""), 0);
    CHECK_INT(knobs_add_all(opt(&options, "request_knob"), &knobs), 0);
    CHECK_INT(knobs.count, 0);
    options_free(&options);
}

/* ---- the key, without a connection */
static const struct option_spec CLIENT_OPTIONS[] = {OPTIONS_OF_CLIENT};
static const struct command CLIENT_COMMAND = {"client", "", "", "", 0, CLIENT_OPTIONS, sizeof CLIENT_OPTIONS / sizeof *CLIENT_OPTIONS, NULL, NULL};
static void warnings(const char *url, const char *key, size_t count, const char *words) {
    struct options options;
    struct endpoint endpoint;
    if (key) setenv("OPENAI_API_KEY", key, 1);
    CHECK_INT(options_of_words(&options, &CLIENT_COMMAND, ""), 0);
    CHECK_INT(endpoint_open(endpoint_settings_of(&options), url, "m", &endpoint), 0);
    CHECK_INT(endpoint.warnings.count, count);
    if (endpoint.warnings.count) check_note(count == 1 && strstr(endpoint.warnings.items[0], words) && !strstr(endpoint.warnings.items[0], key),
                                                 __FILE__, __LINE__, "%s", endpoint.warnings.items[0]);
    CHECK_INT(endpoint.key != NULL, key && *key);
    endpoint_close(&endpoint);
    CHECK(!endpoint.key && !endpoint.url && !endpoint.server);
    options_free(&options);
    unsetenv("OPENAI_API_KEY");
}
static void test_key(void) {
    check_case("a key sent over an unencrypted connection");
    warnings("http://192.0.2.7:8000/v1", "sekret", 1, "http://192.0.2.7:8000: the API key from OPENAI_API_KEY is sent unencrypted");
    warnings("http://192.0.2.7:8000/v1", NULL, 0, NULL);
    warnings("http://192.0.2.7:8000/v1", "", 0, NULL);
    warnings("https://192.0.2.7:8000/v1", "sekret", 0, NULL);
    warnings("http://127.0.0.1:8000", "sekret", 0, NULL);
    warnings("http://localhost:8000", "sekret", 0, NULL);
    warnings("http://[::1]:8000", "sekret", 0, NULL);
    warnings("http://localhost.example.org", "sekret", 1, "unencrypted");
    warnings("http://127.example.org", "sekret", 1, "unencrypted");
}

int main(void) {
    if (!folder_make("endpoint")) return 1;
    RUN_TESTS(test_png, test_unique_png, test_unique_jpeg, test_hostile_jpeg, test_resized, test_kinds, test_grammar,
              test_refused, test_combinations, test_option, test_key);
    return room_end("test_endpoint");
}
