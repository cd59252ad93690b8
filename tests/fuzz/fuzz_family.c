/* fuzz_family.c: any bytes as the three configuration files that vp_family_from_config takes, 0xFF between them; after a further 0xFF a key and
 * its text. A family that comes of them counts the tokens of any image, or says why not. libFuzzer entry. */
#include "fuzz.h"
#include "base/json.h"
#include "vlmprof_families.h"

enum { FILES = 3 };

static void check_error(const vp_error *error) {
    MUST(error->text[0] && vp_utf8_valid_bytes(error->text, strlen(error->text)) == strlen(error->text));
}
static void count_tokens(const vp_family *family, int32_t width, int32_t height) {
    vp_vision_count count;
    vp_error error;
    error.text[0] = 0;
    vp_result result = vp_family_count(family, width, height, &count, &error);
    if (result != VP_OK) {
        MUST(result == VP_ERR_RANGE || result == VP_ERR_UNSUPPORTED);
        check_error(&error);
        return;
    }
    MUST(count.total_tokens >= 0 && count.feature_tokens >= -1 && count.separator_tokens >= -1 && count.marker_tokens >= -1);
    MUST(count.views >= -1 && count.rows >= -1 && count.cols >= -1);
}
static void count_all(const vp_family *family, const uint8_t *data, size_t bytes) {
    static const int32_t sizes[][2] = {{1, 1}, {640, 480}, {VP_FAMILY_PX_LIMIT, 1}, {1, VP_FAMILY_PX_LIMIT}, {VP_FAMILY_PX_LIMIT, VP_FAMILY_PX_LIMIT}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) count_tokens(family, sizes[i][0], sizes[i][1]);
    if (bytes >= 4) count_tokens(family, 1 + (data[0] | data[1] << 8), 1 + (data[2] | data[3] << 8));
}
/* a key and its text, a line each */
static void set_key(vp_family *family, const uint8_t *data, size_t bytes) {
    static vp_family before;
    char *text = (char *)malloc(bytes + 1), *value;
    vp_error error;
    MUST(text != NULL);
    memcpy(text, data, bytes);
    text[bytes] = 0;
    value = strchr(text, '\n');
    if (value) *value++ = 0; else value = text + bytes;
    before = *family;
    if (vp_family_set(family, text, value, &error) == VP_OK) count_all(family, data, bytes);
    else {
        MUST(memcmp(&before, family, sizeof before) == 0);
        check_error(&error);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static struct parsed parsed[FILES];
    static vp_family family;
    const vp_json *files[FILES] = {NULL, NULL, NULL};
    const uint8_t *rest = data, *next;
    char *text[FILES] = {NULL, NULL, NULL};
    size_t rest_bytes = bytes, next_bytes = 0, part;
    vp_error error;
    for (int i = 0; i < FILES && rest; i++) {
        part = fuzz_split(rest, rest_bytes, &next, &next_bytes);
        text[i] = (char *)malloc(part + !part); /* of its exact length: a byte too far shows */
        MUST(text[i] != NULL);
        if (part) memcpy(text[i], rest, part);
        if (parse_json(&parsed[i], text[i], part, NULL) == VP_OK && node_is(&parsed[i].json, 0, VP_JSON_OBJECT)) files[i] = &parsed[i].json;
        rest = next;
        rest_bytes = next_bytes;
    }
    error.text[0] = 0;
    vp_result result = vp_family_from_config(&family, files, &error);
    if (result == VP_OK) {
        MUST(family.preset != NULL);
        count_all(&family, data, bytes);
        if (rest) set_key(&family, rest, rest_bytes);
    } else {
        MUST(result == VP_ERR_NOT_FOUND || result == VP_ERR_UNSUPPORTED || result == VP_ERR_RANGE);
        check_error(&error);
    }
    for (int i = 0; i < FILES; i++) free(text[i]);
    return 0;
}
