/* sizes.c: reads image sizes from text, image files and folders of them. */
#include "tile/family.h"

#include "base/console.h"
#include "base/files.h"
#include "model/image.h"
#include "vlmprof_file.h"
#include "vlmprof_image.h"

#include <ctype.h>
#include <errno.h>
#include <unistd.h>

/* Two integers with some of the separators between them. */
static int is_size(const char *text, const char *separators, int64_t *width, int64_t *height) {
    size_t first = strspn(text, "0123456789"), gap = strspn(text + first, separators),
           second = strspn(text + first + gap, "0123456789");
    if (!first || !gap || !second || first > 18 || second > 18 || text[first + gap + second]) return 0;
    if (gap > 1 && memchr(text + first, 'x', gap)) return 0;
    *width = strtoll(text, NULL, 10);
    *height = strtoll(text + first + gap, NULL, 10);
    return 1;
}
int can_parse_size(const char *text, int64_t *width, int64_t *height) { return is_size(text, "x", width, height); }
int read_size(const char *what, const char *text, int32_t *width_px, int32_t *height_px) {
    int64_t width = 0, height = 0;
    if (!can_parse_size(text, &width, &height) || width < 1 || height < 1 || width > INT32_MAX || height > INT32_MAX)
        return complain(EXIT_USAGE, "%s\"%s\" is not an image size; expected WIDTHxHEIGHT in pixels, like 640x480",
                        what, text);
    *width_px = (int32_t)width;
    *height_px = (int32_t)height;
    return 0;
}

static struct given_size *add_size(struct size_list *sizes, int64_t width, int64_t height, const char *error) {
    struct given_size *size = ADDED(sizes->items, sizes->count);
    *size = (struct given_size){width, height, NULL, error ? copy_text(error, strlen(error)) : NULL, EXIT_USAGE};
    return size;
}
/* Adds the size of an image file, or the reason why it has none. */
static void add_file(struct size_list *sizes, const char *path) {
    vp_error error = {VP_OK, -1, "", ""};
    char *file = NULL, line[LINE_BYTES];
    size_t bytes = 0;
    int32_t width = 0, height = 0;
    vp_result result = vp_file_read(path, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
    if (result == VP_OK) result = any_image_size((const uint8_t *)file, bytes, &width, &height, &error);
    free(file);
    if (result != VP_OK) error_line(line, sizeof line, result, &error);
    struct given_size *size = result == VP_OK ? add_size(sizes, width, height, NULL) : add_size(sizes, 0, 0, line);
    if (result != VP_OK) size->code = result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT;
    size->file = copy_text(path, strlen(path));
    sizes->has_files = 1;
}
static int add_folder(struct size_list *sizes, const char *path) {
    struct text_list names = {NULL, 0};
    struct left_out left_out = {0};
    const size_t before = sizes->count;
    int code = names_of_folder(path, &names);
    for (size_t i = 0; i < names.count; i++) {
        char *file = join_path(path, names.items[i]);
        if (!is_folder(file)) {
            if (is_image_name(names.items[i])) add_file(sizes, file);
            else leave_out(&left_out, names.items[i]);
        }
        free(file);
    }
    say_left_out(path, &left_out);
    text_list_free(&names);
    if (code) return code;
    return sizes->count > before ? 0 : complain(EXIT_INPUT, "%s: there is no image in this folder", path);
}
static int add_operand(struct size_list *sizes, const char *text) {
    int64_t width = 0, height = 0;
    char line[LINE_BYTES];
    if (can_parse_size(text, &width, &height)) add_size(sizes, width, height, NULL);
    else if (is_folder(text)) return add_folder(sizes, text);
    else if (access(text, F_OK) && vp_family_find(text))
        return complain(EXIT_USAGE, "\"%s\" is a model family, not an image: use --family %s", text, text);
    else if (access(text, F_OK) && text[strspn(text, "0123456789xX*+-.,")] == 0) {
        snprintf(line, sizeof line, "\"%.60s\" is not an image size; expected WIDTHxHEIGHT in pixels, like 640x480",
                 text);
        add_size(sizes, 0, 0, line);
    } else add_file(sizes, text);
    return 0;
}
/* Adds a line of a list unless it is empty or a comment. */
static void add_line(struct size_list *sizes, const char *line) {
    int64_t width = 0, height = 0;
    char reason[64];
    line += strspn(line, " \t");
    snprintf(reason, sizeof reason, "not a size: %.40s", line);
    if (!*line || *line == '#') return;
    if (is_size(line, "x \t,", &width, &height)) add_size(sizes, width, height, NULL);
    else add_size(sizes, 0, 0, reason);
}
static int add_list(struct size_list *sizes, const char *path) {
    enum { SIZE_LINE_MAX = 4096 };
    int from_stdin = !strcmp(path, "-"), failed;
    FILE *file = from_stdin ? stdin : fopen(path, "rb");
    char *text = NULL;
    size_t capacity = 0, bytes, number = 0, before = sizes->count;
    if (!file) return complain(EXIT_INPUT, "--sizes %s: %s", path, strerror(errno));
    errno = 0;
    while ((bytes = line_read(file, &text, &capacity, SIZE_LINE_MAX)) > 0 && bytes <= SIZE_LINE_MAX) {
        number++;
        while (bytes && isspace((unsigned char)text[bytes - 1])) text[--bytes] = 0;
        add_line(sizes, text);
    }
    failed = ferror(file);
    if (!from_stdin) fclose(file);
    free(text);
    if (bytes)
        return complain(EXIT_INPUT, "--sizes %s: line %zu has %zu bytes; expected one WxH per line", path, number + 1,
                        bytes);
    if (failed) return complain(EXIT_INPUT, "--sizes %s: %s", path, strerror(errno));
    return sizes->count > before ? 0 : complain(EXIT_INPUT, "--sizes %s contains no sizes", path);
}
int sizes_read(struct size_list *sizes, const char *const *operands, size_t operand_count, const char *list) {
    int code = 0;
    if (!list && !operand_count)
        return complain(EXIT_USAGE, "tile needs sizes (640x480), image files, folders, or --sizes LIST");
    for (size_t i = 0; i < operand_count && !code; i++) code = add_operand(sizes, operands[i]);
    return !code && list ? add_list(sizes, list) : code;
}
void sizes_free(struct size_list *sizes) {
    for (size_t i = 0; i < sizes->count; i++) FREE_ALL(sizes->items[i].file, sizes->items[i].error);
    free(sizes->items);
}
int size_complain(const struct given_size *size, const char *reason) {
    char name[LINE_BYTES] = "";
    if (size->file) snprintf(name, sizeof name, "%s", size->file);
    else if (!size->error) snprintf(name, sizeof name, "%lldx%lld", (long long)size->width, (long long)size->height);
    return strstr(reason, name) ? complain(size->code, "%s", reason) : complain(size->code, "%s: %s", name, reason);
}
