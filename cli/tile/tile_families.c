/* tile_families.c: the tile command for other model families: --family, --checkpoint, --compare, --list_families. Sizes
 * and families are collected first. Then each pair becomes a row of token counts (family_rows), or the largest limit of
 * a family is found (family_invert), or one image is drawn (family_draw). Rows are printed as text, CSV or JSON. */
#include "tile/family.h"

#include "base/console.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/table.h"
#include "model/image.h"
#include "vlmprof.h"
#include "vlmprof_families.h"
#include "vlmprof_file.h"
#include "vlmprof_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct image_size {
    int64_t width, height; /* pixels, not checked; 0 with an error */
    char *file;            /* NULL if the size was given as text */
    char *error;           /* reason if there is no size; otherwise NULL */
    int code;              /* the exit code if this is the only row and it is rejected */
};
struct family_job {
    vp_family *families; size_t family_count;
    struct image_size *sizes; size_t size_count, size_capacity;
    int compare;   /* 1 if the option is given */
    int has_files; /* 1 if a size comes from a file, so rows show file names */
    struct table_stream stream;
};
/* An image in a family. Counts are negative if the family has none or the size is rejected. */
struct family_line {
    const vp_family *family;
    const char *name, *error, *file; /* error, file: NULL if none */
    int64_t width, height;           /* negative if unknown */
    vp_vision_count count;
};
enum { WITH_FAMILY = 1, WITH_FILES = 2, COLUMNS_MOST = 36 };
#define LINE(member) CELL(struct family_line, member)
#define COUNTED(key, member) {LINE(count.member), key, .rules = COLUMN_FROM_0}
static const struct table_column SIZE_COLUMNS[] = {
    {LINE(width), "width", .rules = COLUMN_FROM_0}, {LINE(height), "height", .rules = COLUMN_FROM_0},
    {LINE(name), "family", .in = WITH_FAMILY},
    {CELL_PAIR(struct family_line, width, height), NULL, "size", .format = "x", .width = -13,
     .rules = COLUMN_NAMES | COLUMN_FROM_1},
    {LINE(name), NULL, "family", .width = -22, .rules = COLUMN_NAMES}};
#define SHOWN(member, heading, columns) {LINE(count.member), NULL, heading, .width = columns, .rules = COLUMN_FROM_0}
static const struct table_column COUNT_COLUMNS[] = {
    COUNTED("resized_width", resized_width_px), COUNTED("resized_height", resized_height_px), COUNTED("rows", rows),
    COUNTED("cols", cols), COUNTED("tiles_with_global", views), COUNTED("feature_tokens", feature_tokens),
    COUNTED("separator_tokens", separator_tokens), COUNTED("marker_tokens", marker_tokens),
    COUNTED("total_tokens", total_tokens), {LINE(error), "error"}, {LINE(file), "file", .in = WITH_FILES},
    {CELL_PAIR(struct family_line, count.resized_width_px, count.resized_height_px), NULL, "resized", .format = "x",
     .width = 11},
    {CELL_PAIR(struct family_line, count.rows, count.cols), NULL, "rows,cols", .format = ",", .width = 9},
    SHOWN(views, "views", 6), SHOWN(feature_tokens, "features", 9), SHOWN(separator_tokens, "separators", 10),
    SHOWN(marker_tokens, "markers", 8), SHOWN(total_tokens, "tokens", 8), {LINE(file), NULL, ""}};

static struct image_size *add_size(struct family_job *job, int64_t width, int64_t height, const char *file) {
    if (job->size_count == job->size_capacity) {
        job->size_capacity = job->size_capacity * 2 + 16;
        job->sizes = resize(job->sizes, job->size_capacity, sizeof *job->sizes);
    }
    struct image_size *size = &job->sizes[job->size_count++];
    memset(size, 0, sizeof *size);
    size->width = width;
    size->height = height;
    size->code = EXIT_USAGE;
    if (file) size->file = copy_text(file, strlen(file));
    job->has_files |= file != NULL;
    return size;
}
/* Adds the size of an image file, or the reason why it has none. */
static void add_file(struct family_job *job, const char *path) {
    vp_error error = {VP_OK, -1, "", ""};
    char *file = NULL, line[LINE_BYTES];
    size_t bytes = 0;
    int32_t width = 0, height = 0;
    vp_result result = vp_file_read(path, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
    if (result == VP_OK) result = vp_image_size((const uint8_t *)file, bytes, &width, &height, &error);
    free(file);
    struct image_size *size = add_size(job, result == VP_OK ? width : 0, result == VP_OK ? height : 0, path);
    if (result == VP_OK) return;
    error_line(line, sizeof line, result, &error);
    size->error = copy_text(line, strlen(line));
    size->code = result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT;
}
static int add_folder(struct family_job *job, const char *path) {
    struct text_list names = {NULL, 0};
    const size_t before = job->size_count;
    int code = names_of_folder(path, &names);
    for (size_t i = 0; i < names.count; i++) {
        char *file = join_path(path, names.items[i]);
        if (is_image_name(names.items[i]) && !is_folder(file)) add_file(job, file);
        free(file);
    }
    text_list_free(&names);
    if (code) return code;
    return job->size_count > before ? 0 : complain(EXIT_INPUT, "%s: there is no image in this folder", path);
}
/* Adds a size, an image file or all images of a folder. */
static int add_operand(struct family_job *job, const char *text) {
    int64_t width = 0, height = 0;
    if (can_parse_size(text, SIZE_SEPARATORS, &width, &height)) add_size(job, width, height, NULL);
    else if (is_folder(text)) return add_folder(job, text);
    else if (access(text, F_OK) && text[strspn(text, "0123456789xX*+-.,")] == 0) {
        char line[LINE_BYTES];
        snprintf(line, sizeof line, "\"%s\" is not an image size; expected WIDTHxHEIGHT in pixels, like 640x480", text);
        add_size(job, 0, 0, NULL)->error = copy_text(line, strlen(line));
    } else add_file(job, text);
    return 0;
}
static void add_line(void *user, const char *line) {
    struct family_job *job = user;
    int64_t width = 0, height = 0;
    char reason[64];
    if (can_parse_size(line, SIZE_LIST_SEPARATORS, &width, &height)) {
        add_size(job, width, height, NULL);
        return;
    }
    snprintf(reason, sizeof reason, "not a size: %.40s", line);
    add_size(job, 0, 0, NULL)->error = copy_text(reason, strlen(reason));
}
static int add_list(struct family_job *job, const char *path) {
    const size_t before = job->size_count;
    int code = size_list_read(path, add_line, job);
    if (code) return code;
    return job->size_count > before ? 0 : complain(EXIT_INPUT, "--sizes %s contains no size", path);
}

static int has_sides_in_range(const struct image_size *size) {
    return size->width >= 1 && size->height >= 1 && size->width <= VP_FAMILY_PX_LIMIT
           && size->height <= VP_FAMILY_PX_LIMIT;
}

static vp_family *add_family(struct family_job *job) {
    job->families = resize(job->families, job->family_count + 1, sizeof *job->families);
    return &job->families[job->family_count++];
}
/* Finds the family that a checkpoint's config files describe. Returns 0 or an exit code. */
static int families_of_checkpoint(struct family_job *job, const char *folder) {
    static const char *const config_names[3] = {"preprocessor_config.json", "processor_config.json", "config.json"};
    struct parsed parsed[3] = {0};
    const vp_json *files[3] = {NULL, NULL, NULL};
    char *text[3] = {NULL, NULL, NULL};
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = VP_OK;
    int code = 0, found = 0;
    for (int i = 0; i < 3 && !code; i++) {
        char *path = join_path(folder, config_names[i]);
        size_t bytes = 0;
        if (access(path, F_OK) == 0) {
            found++;
            result = vp_file_read(path, JSON_FILE_BYTES_MAX, &text[i], &bytes, &error);
            if (result == VP_OK) result = parse_json(&parsed[i], text[i], bytes, &error);
            if (result == VP_OK && !node_is(&parsed[i].json, 0, VP_JSON_OBJECT))
                result = vp_error_set(&error, VP_ERR_FORMAT, -1, path, "not a JSON object");
            files[i] = &parsed[i].json;
            if (result != VP_OK) code = complain_result(exit_code_of(result), path, result, &error);
        }
        free(path);
    }
    if (!code && !found)
        code = complain(EXIT_INPUT, "%s: there is neither preprocessor_config.json nor config.json", folder);
    if (!code && (result = vp_family_from_config(add_family(job), files, &error)) != VP_OK)
        code = complain_result(EXIT_INPUT, folder, result, &error);
    for (int i = 0; i < 3; i++) { free(text[i]); free(parsed[i].nodes); }
    return code;
}
/* Finds the families that the settings name, and sets their keys. Returns 0 or an exit code. */
static int families_of(struct family_job *job, const struct family_settings *settings) {
    const char *wanted = job->compare ? settings->compare : settings->family;
    int code = settings->checkpoint ? families_of_checkpoint(job, settings->checkpoint) : 0;
    for (; !code && wanted; wanted = job->compare && strchr(wanted, ',') ? strchr(wanted, ',') + 1 : NULL) {
        size_t bytes = job->compare ? strcspn(wanted, ",") : strlen(wanted);
        char *name = copy_text(wanted, bytes);
        code = family_by_name(job->compare ? "compare" : "family", name, add_family(job));
        free(name);
    }
    return code ? code : family_set_keys(settings->keys, job->families, job->family_count);
}
/* The value of a key, as typed on the command line. */
static void key_text(const vp_family *family, const vp_family_key *key, char *out, size_t capacity) {
    if (key->slot == VP_SLOT_RATIO) {
        snprintf(out, capacity, "%.15g", family->ratio);
    } else if (key->slot == VP_SLOT_SPLIT && family->preset->words) {
        const char *word = family->preset->words;
        for (int64_t i = 0; i < family->value[VP_SLOT_SPLIT]; i++) word = strchr(word, ' ') + 1;
        snprintf(out, capacity, "%.*s", (int)strcspn(word, " "), word);
    } else snprintf(out, capacity, "%lld", (long long)family->value[key->slot]);
}
/* A key of the family: in JSON a number, or a word of a list; in CSV as typed on the command line. */
static void cell_key_text(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    const vp_family *family = ((const struct family_line *)row)->family;
    const vp_family_key *key = family->preset->keys;
    (void)context;
    while (!key->name || strcmp(key->name, cell->key)) key++;
    key_text(family, key, own, CELL_BYTES);
    cell_set_text(cell, own);
}
static void cell_key(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    const vp_family *family = ((const struct family_line *)row)->family;
    const vp_family_key *key = family->preset->keys;
    while (!key->name || strcmp(key->name, cell->key)) key++;
    if (key->slot == VP_SLOT_RATIO) *cell = KEY(key->name, family->ratio);
    else if (key->slot == VP_SLOT_SPLIT && family->preset->words) cell_key_text(row, context, cell, own);
    else *cell = KEY(key->name, family->value[key->slot]);
}
/* Adds the columns of the first keys of a family. Returns their number. */
static size_t key_columns(const vp_family *family, int keys, int in_csv, struct table_column *columns) {
    size_t count = 0;
    for (int i = 0; i < keys; i++)
        for (int csv = 0; csv <= in_csv && family->preset->keys[i].name; csv++)
            columns[count++] =
                (struct table_column){CELL_MADE(csv ? cell_key_text : cell_key), family->preset->keys[i].name,
                                      .rules = csv ? COLUMN_NOT_IN_JSON : COLUMN_NOT_IN_CSV};
    return count;
}

/* Returns 1 if every image has the same count in this family. */
static int is_constant(const vp_family *family) { return !strcmp(family->preset->rule, "constant"); }
/* Makes a table of one row: the size, the keys of its family, its counts. */
static struct table line_table(const struct family_job *job, const struct family_line *line,
                               struct table_column columns[COLUMNS_MOST]) {
    const vp_family *family = line->family;
    struct table table = TABLE(SIZE_COLUMNS, line, 1, NULL, 0);
    size_t count = sizeof SIZE_COLUMNS / sizeof *SIZE_COLUMNS;
    memcpy(columns, SIZE_COLUMNS, sizeof SIZE_COLUMNS);
    count += key_columns(family, family->preset->column_count, !job->compare, columns + count);
    memcpy(columns + count, COUNT_COLUMNS, sizeof COUNT_COLUMNS);
    table.columns = columns;
    table.column_count = count + sizeof COUNT_COLUMNS / sizeof *COUNT_COLUMNS;
    table.has =
        (job->stream.json || job->compare || is_constant(family) ? WITH_FAMILY : 0) | (job->has_files ? WITH_FILES : 0);
    return table;
}
/* Counts one image in one family and prints its row. If it is rejected and is the only row (`alone`), prints an error
 * instead and returns an exit code. Otherwise returns 0. */
static int family_row(struct family_job *job, const vp_family *family, const struct image_size *size, int alone) {
    vp_error error = {VP_OK, -1, "", ""};
    const int is_known = size->width || !size->error;
    struct family_line line = {
        family, family->preset->name, NULL, size->file, is_known ? size->width : -1, is_known ? size->height : -1, {0}};
    struct table_column columns[COLUMNS_MOST];
    const struct table table = line_table(job, &line, columns);
    char reason[LINE_BYTES] = "";
    vp_result result = VP_ERR_RANGE;
    if (size->error) snprintf(reason, sizeof reason, "%s", size->error);
    else if (!has_sides_in_range(size))
        snprintf(reason, sizeof reason, "%lldx%lld: sides must be 1 to %d pixels", (long long)size->width,
                 (long long)size->height, VP_FAMILY_PX_LIMIT);
    else if ((result = vp_family_count(family, (int32_t)size->width, (int32_t)size->height, &line.count, &error))
             != VP_OK)
        error_line(reason, sizeof reason, result, &error);
    if (result != VP_OK && alone)
        return complain(size->code, "%s%s%s", size->file && !strstr(reason, size->file) ? size->file : "",
                        size->file ? ": " : "", reason);
    if (result != VP_OK) {
        line.error = reason;
        memset(&line.count, 0xff, sizeof line.count); /* below 0 */
    }
    table_stream_row(&job->stream, &table, line.error);
    return 0;
}
static int family_rows(struct family_job *job) {
    const int alone = job->size_count == 1 && job->family_count == 1;
    int code = 0;
    for (size_t i = 0; i < job->size_count && !code; i++)
        for (size_t k = 0; k < job->family_count && !code; k++)
            code = family_row(job, &job->families[k], &job->sizes[i], alone);
    table_stream_end(&job->stream);
    if (!code && job->stream.refused_count)
        code = complain(EXIT_INPUT, "%lld of %lld rows rejected; see their errors",
                        (long long)job->stream.refused_count, (long long)job->stream.row_count);
    return code;
}

/* The request of --max_tokens, and the answer of one family: the largest value of its knob that meets the limit. */
struct family_limit {
    const char *family, *key;                  /* key: NULL if the family has no knob */
    const char *reason;                        /* reason if there is no answer; otherwise NULL */
    int64_t value, tokens, percentile, images; /* value: negative without an answer */
    int unlimited;                             /* 1 if no value of the knob gives too many tokens */
};
static void cell_unlimited(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    (void)context;
    (void)own;
    *cell = (struct json_member)KEY_BOOL(cell->key, ((const struct family_limit *)row)->unlimited);
}
#define LIMIT(member) CELL(struct family_limit, member)
static const struct table_column LIMIT_COLUMNS[] = {
    {LIMIT(family), "family"}, {LIMIT(key), "key"}, {LIMIT(value), "value", .rules = COLUMN_FROM_0},
    {CELL_MADE(cell_unlimited), "unlimited"}, {LIMIT(tokens), "max_tokens"}, {LIMIT(percentile), "percentile"},
    {LIMIT(images), "images"}, {LIMIT(reason), "error", .rules = COLUMN_NOT_IN_CSV}};

static void print_limit(const struct family_limit *limit) {
    char images[64] = "the image";
    if (limit->images > 1)
        snprintf(images, sizeof images, "%lld %% of %lld images", (long long)limit->percentile,
                 (long long)limit->images);
    if (limit->reason) print_plain("%-22s %s\n", limit->family, limit->reason);
    else if (limit->unlimited)
        print_plain("%-22s --%s: no value gives %s more than %lld tokens\n", limit->family, limit->key, images,
                    (long long)limit->tokens);
    else
        print_plain("%-22s --%s %lld keeps %s within %lld tokens\n", limit->family, limit->key, (long long)limit->value,
                    images, (long long)limit->tokens);
}
/* Checks the sizes of all images. Returns 0 or an exit code. */
static int sizes_of(const struct family_job *job, int32_t (*sizes)[2]) {
    for (size_t i = 0; i < job->size_count; i++) {
        const struct image_size *size = &job->sizes[i];
        if (size->error) return complain(size->code, "%s", size->error);
        if (!has_sides_in_range(size))
            return complain(EXIT_USAGE, "%lldx%lld: sides must be 1 to %d pixels", (long long)size->width,
                            (long long)size->height, VP_FAMILY_PX_LIMIT);
        sizes[i][0] = (int32_t)size->width;
        sizes[i][1] = (int32_t)size->height;
    }
    return 0;
}
/* --max_tokens: prints the limit of each family. Returns 0 or an exit code. */
static int family_invert(struct family_job *job, const struct family_settings *settings) {
    struct family_limit *limits = zeroed(job->family_count + 1, sizeof *limits);
    vp_error *errors = zeroed(job->family_count + 1, sizeof *errors);
    int32_t(*sizes)[2] = resize(NULL, job->size_count, sizeof *sizes);
    struct text_buffer out = {NULL, 0, 0};
    const struct table table = TABLE(LIMIT_COLUMNS, limits, job->family_count, NULL, 0);
    int code = sizes_of(job, sizes);
    for (size_t k = 0; k < job->family_count && !code; k++) {
        const vp_family *family = &job->families[k];
        const vp_family_key *knob = vp_family_knob(family);
        struct family_limit limit = {family->preset->name, knob ? knob->name : NULL, NULL, -1, settings->max_tokens,
                                     settings->percentile, (int64_t)job->size_count, 0};
        int64_t value = -1;
        vp_result result =
            vp_family_largest(family, (const int32_t(*)[2])sizes, job->size_count, (double)limit.percentile / 100.0,
                              limit.tokens, &value, &limit.unlimited, &errors[k]);
        if (result == VP_OK) limit.value = value;
        else {
            limit.unlimited = 0;
            limit.reason = errors[k].text;
            if (!job->compare) code = complain_result(EXIT_WORK, limit.family, result, &errors[k]);
        }
        limits[k] = limit;
    }
    if (!code && job->stream.json) {
        vp_json_writer writer;
        vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
        table_put(&writer, NULL, &table);
        json_end(&writer); /* main checks stdout */
    } else if (!code && job->stream.csv) table_csv(&out, &table);
    else
        for (size_t k = 0; k < job->family_count && !code; k++) print_limit(&limits[k]);
    if (out.bytes) fwrite(out.data, 1, out.bytes, stdout);
    FREE_ALL(out.data, limits, errors, sizes);
    return code;
}

/* ---- drawings: the canvas with its tiles on the left, the global view on the right; both at most 900 pixels high */
enum { DRAWN_PX_MAX = 900, GLOBAL_VIEW_PX = 224, GAP_PX = 24 };
struct canvas { uint8_t *rgb; int32_t width, height; };
static void paint(struct canvas *canvas, int32_t column, int32_t row, const uint8_t rgb[3]) {
    if (column >= 0 && row >= 0 && column < canvas->width && row < canvas->height)
        memcpy(canvas->rgb + ((size_t)row * (size_t)canvas->width + (size_t)column) * 3, rgb, 3);
}
/* Adds the image's colour at a position from 0 to 1 across and down; without an image, the colour of a checkerboard. */
static void add_colour(const vp_image *image, double across, double down, int32_t sum[3]) {
    if (image->rgb) {
        const size_t row = (size_t)(down * image->height_px), column = (size_t)(across * image->width_px);
        const uint8_t *pixel = image->rgb + (row * (size_t)image->width_px + column) * 3;
        for (int channel = 0; channel < 3; channel++) sum[channel] += pixel[channel];
        return;
    }
    const int is_light = (int)(across * image->width_px / 32) % 2 == (int)(down * image->height_px / 32) % 2;
    for (int channel = 0; channel < 3; channel++) sum[channel] += is_light ? 200 : 150;
}
/* Paints the image over a rectangle. Every pixel is the mean of 4 x 4 positions in the image. */
static void paint_image(struct canvas *canvas, const vp_image *image, int32_t left, int32_t top, int32_t width,
                        int32_t height) {
    for (int32_t row = 0; row < height; row++) {
        for (int32_t column = 0; column < width; column++) {
            int32_t sum[3] = {0, 0, 0};
            uint8_t rgb[3];
            for (int k = 0; k < 16; k++)
                add_colour(image, (column + (k % 4 + 0.5) / 4) / width, (row + (k / 4 + 0.5) / 4) / height, sum);
            for (int channel = 0; channel < 3; channel++) rgb[channel] = (uint8_t)(sum[channel] / 16);
            paint(canvas, left + column, top + row, rgb);
        }
    }
}
/* Paints a rectangle at the top black, the colour of padding. */
static void paint_black(struct canvas *canvas, int32_t left, int32_t width, int32_t height) {
    for (int32_t row = 0; row < height; row++)
        memset(canvas->rgb + ((size_t)row * (size_t)canvas->width + (size_t)left) * 3, 0, (size_t)width * 3);
}
static void paint_frame(struct canvas *canvas, double left, double top, double right, double bottom, int thick,
                        const uint8_t rgb[3]) {
    const int32_t x0 = (int32_t)left, y0 = (int32_t)top, x1 = (int32_t)right - 1, y1 = (int32_t)bottom - 1;
    for (int ring = 0; ring < thick; ring++) {
        for (int32_t column = x0; column <= x1; column++) {
            paint(canvas, column, y0 + ring, rgb);
            paint(canvas, column, y1 - ring, rgb);
        }
        for (int32_t row = y0; row <= y1; row++) {
            paint(canvas, x0 + ring, row, rgb);
            paint(canvas, x1 - ring, row, rgb);
        }
    }
}
/* Finds the position of the image on a canvas or in the global view: spot gets its left, top, width and height. Some
 * families keep its aspect ratio, in the middle or at the top left; others stretch it over everything. `scale` is drawn
 * pixels per canvas pixel, or 0 for the global view, over which most families stretch the image. */
static void draw_fit(const vp_family *family, const struct image_size *size, double width, double height, double scale,
                     double spot[4]) {
    const char *rule = family->preset->rule, *name = family->preset->name;
    const int llama = !strcmp(name, "llama4") || !strcmp(name, "mllama"), deepseek = !strcmp(name, "deepseek_vl2");
    const int middle = !strcmp(rule, "molmo") || deepseek
                       || (scale > 0 ? !strcmp(rule, "anyres") || !strcmp(name, "aria") : !strcmp(rule, "ocr"));
    const int corner = scale > 0 && (llama || !strcmp(rule, "padded") || !strcmp(rule, "growing"));
    double across = width / (double)size->width, down = height / (double)size->height, fit;
    if (llama && scale > 0) { /* these do not enlarge an image beyond one tile */
        const double tile = (double)family->value[VP_SLOT_TILE];
        const double most_w = ((double)size->width > tile ? (double)size->width : tile) * scale;
        const double most_h = ((double)size->height > tile ? (double)size->height : tile) * scale;
        across = (most_w < width ? most_w : width) / (double)size->width;
        down = (most_h < height ? most_h : height) / (double)size->height;
    }
    fit = across < down ? across : down;
    spot[2] = middle || corner ? (double)size->width * fit : width;
    spot[3] = middle || corner ? (double)size->height * fit : height;
    if (spot[2] < 1) spot[2] = 1;
    if (spot[3] < 1) spot[3] = 1;
    spot[0] = middle ? (width - spot[2]) / 2 : 0;
    spot[1] = middle ? (height - spot[3]) / 2 : 0;
}
/* Draws a frame around each tile. Molmo's crops overlap: each begins one stride after the previous one. If the whole
 * image is one view, the frames are the grid of tokens. */
static void draw_tiles(struct canvas *canvas, const vp_family *family, const vp_vision_count *count, double width,
                       double height) {
    static const uint8_t colours[4][3] = {{230, 60, 60}, {50, 110, 230}, {40, 160, 70}, {240, 150, 20}};
    const int molmo = !strncmp(family->preset->name, "molmo", 5), second = !strcmp(family->preset->name, "molmo2");
    const double margin = molmo ? 112 : 0, stride = second ? 266 : molmo ? 224 : 0;
    int64_t rows = count->rows < 1 ? 1 : count->rows, cols = count->cols < 1 ? 1 : count->cols, merge = 1;
    int thick = 3;
    if (count->views < 0) { /* one view: a frame for each token */
        if (family->value[VP_SLOT_MERGE] > 1 && count->feature_tokens < rows * cols)
            merge = family->value[VP_SLOT_MERGE];
        thick = 1;
        rows = (rows + merge - 1) / merge;
        cols = (cols + merge - 1) / merge;
        if (width / (double)cols < 4 || height / (double)rows < 4) rows = cols = 1; /* too fine to see */
    }
    const double unit_x = molmo ? width / ((double)cols * stride + margin) : width / (double)cols;
    const double unit_y = molmo ? height / ((double)rows * stride + margin) : height / (double)rows;
    const double step_x = molmo ? stride * unit_x : unit_x, step_y = molmo ? stride * unit_y : unit_y;
    const double tile_width = molmo ? (stride + margin) * unit_x : unit_x;
    const double tile_height = molmo ? (stride + margin) * unit_y : unit_y;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < cols; column++) {
            const double left = (double)column * step_x, top = (double)row * step_y;
            paint_frame(canvas, left, top, left + tile_width, top + tile_height, thick,
                        count->views < 0 ? colours[1] : colours[(row % 2) * 2 + column % 2]);
        }
}
/* The size in pixels of the canvas that is cut into tiles. */
static void draw_canvas(const vp_family *family, const struct image_size *size, const vp_vision_count *count,
                        double *width, double *height) {
    const char *rule = family->preset->rule;
    const int molmo = !strcmp(rule, "molmo"),
              slices = count->rows > 1 && (!strcmp(rule, "lfm2") || !strcmp(rule, "slices"));
    const double tile = molmo ? 224 : (double)family->value[VP_SLOT_TILE], margin = molmo ? 112 : 0;
    *width = (double)(count->resized_width_px > 0 ? count->resized_width_px : size->width);
    *height = (double)(count->resized_height_px > 0 ? count->resized_height_px : size->height);
    /* for all others the resized image is the canvas */
    if (!molmo && !slices && strcmp(family->preset->name, "mllama")) return;
    *width = (double)count->cols * tile + margin;
    *height = (double)count->rows * tile + margin;
}
/* Draws the global view to the right of a canvas of this size. `spot` is the position of the image on that canvas. */
static void draw_global_view(struct canvas *canvas, const vp_family *family, const struct image_size *size,
                             const vp_image *image, int32_t canvas_width, int32_t canvas_height, double spot[4]) {
    static const uint8_t green[3] = {20, 120, 60};
    const int32_t left = canvas_width + GAP_PX, side = GLOBAL_VIEW_PX;
    if (!strcmp(family->preset->rule, "padded") || !strcmp(family->preset->rule, "growing")) {
        /* these families stretch the whole canvas over it, not the image */
        spot[2] *= (double)side / canvas_width;
        spot[3] *= (double)side / canvas_height;
    } else draw_fit(family, size, side, side, 0, spot);
    paint_black(canvas, left, side, side);
    paint_image(canvas, image, left + (int32_t)spot[0], (int32_t)spot[1], (int32_t)spot[2], (int32_t)spot[3]);
    paint_frame(canvas, left, 0, left + side, side, 3, green);
}
/* Draws an image in a family into a PNG file. Returns 0 or an exit code. */
static int draw_family(const vp_family *family, const struct image_size *size, const vp_image *image,
                       const char *path) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_vision_count count;
    struct canvas canvas = {NULL, 0, 0};
    struct text_buffer png = {NULL, 0, 0};
    double width, height, scale, spot[4];
    int32_t drawn_width, drawn_height, side = 0, code;
    vp_result result = vp_family_count(family, (int32_t)size->width, (int32_t)size->height, &count, &error);
    if (result != VP_OK) return complain_result(EXIT_USAGE, family->preset->name, result, &error);
    draw_canvas(family, size, &count, &width, &height);
    scale = DRAWN_PX_MAX / (width > height ? width : height);
    if (scale > 1) scale = 1;
    drawn_width = (int32_t)(width * scale) > 1 ? (int32_t)(width * scale) : 1;
    drawn_height = (int32_t)(height * scale) > 1 ? (int32_t)(height * scale) : 1;
    if (count.views > count.rows * count.cols && count.rows * count.cols > 0) side = GLOBAL_VIEW_PX;
    canvas.width = drawn_width + (side ? side + GAP_PX : 0);
    canvas.height = drawn_height > side ? drawn_height : side;
    canvas.rgb = resize(NULL, (size_t)canvas.width * (size_t)canvas.height, 3);
    memset(canvas.rgb, 235, (size_t)canvas.width * (size_t)canvas.height * 3);
    paint_black(&canvas, 0, drawn_width, drawn_height);
    draw_fit(family, size, drawn_width, drawn_height, scale, spot);
    paint_image(&canvas, image, (int32_t)spot[0], (int32_t)spot[1], (int32_t)spot[2], (int32_t)spot[3]);
    draw_tiles(&canvas, family, &count, drawn_width, drawn_height);
    if (side) draw_global_view(&canvas, family, size, image, drawn_width, drawn_height, spot);
    add_png(&png, canvas.rgb, canvas.width, canvas.height);
    code = file_write_text(path, &png);
    FREE_ALL(png.data, canvas.rgb);
    return code;
}
/* --draw: draws the image by the rule of the family. Returns 0 or an exit code. */
static int family_draw(struct family_job *job, const char *path) {
    vp_image image = {0, 0, NULL};
    char reason[LINE_BYTES];
    int code = 0;
    if (job->size_count != 1 || job->family_count != 1)
        return complain(EXIT_USAGE, "--draw needs exactly one family and one image or size");
    if (job->sizes->error) {
        const char *file = job->sizes->file, *error = job->sizes->error;
        int is_named = !file || strstr(error, file);
        return complain(job->sizes->code, "%s%s%s", is_named ? "" : file, is_named ? "" : ": ", error);
    }
    if (!has_sides_in_range(job->sizes))
        return complain(EXIT_USAGE, "sides must be 1 to %d pixels", VP_FAMILY_PX_LIMIT);
    image.width_px = (int32_t)job->sizes->width;
    image.height_px = (int32_t)job->sizes->height;
    if (job->sizes->file && (code = load_image(job->sizes->file, &image, reason, sizeof reason)) != 0)
        return complain(code, "%s", reason);
    code = draw_family(&job->families[0], &job->sizes[0], &image, path);
    if (image.rgb) vp_image_free(&image);
    return code;
}

/* Prints a preset with its keys and their published values, as text and as JSON. */
static void print_preset(const vp_family *family) {
    const vp_family_preset *preset = family->preset;
    char text[64];
    print_plain("%-27s %-15s %-10s", preset->name, preset->rule, vp_certainty_text(preset->certainty));
    for (int k = 0; k < VP_FAMILY_KEYS_LIMIT; k++) {
        if (!preset->keys[k].name) continue;
        key_text(family, &preset->keys[k], text, sizeof text);
        print_plain(" %s=%s", preset->keys[k].name, text);
    }
    putchar('\n');
}
static void list_families(void) {
    static vp_family family;
    print_plain("%-27s %-15s %-10s keys and their published values\n", "family", "rule", "certainty");
    for (int32_t i = 0; vp_family_at(i); i++) {
        vp_family_default(vp_family_at(i), &family);
        print_preset(&family);
    }
}
static void list_families_json(void) {
    static vp_family family;
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
    vp_json_begin_array(&writer);
    for (int32_t i = 0; vp_family_at(i); i++) {
        const vp_family_preset *preset = vp_family_at(i);
        const struct family_line line = {&family, preset->name, NULL, NULL, -1, -1, {0}};
        struct table_column columns[COLUMNS_MOST];
        struct table table = TABLE(SIZE_COLUMNS, &line, 1, NULL, 0);
        table.columns = columns;
        vp_family_default(preset, &family);
        table.column_count = key_columns(&family, VP_FAMILY_KEYS_LIMIT, 0, columns);
        PUT(&writer, KEY_OBJECT(NULL), KEY("family", preset->name), KEY("aliases", preset->aliases),
            KEY("rule", preset->rule), KEY("certainty", vp_certainty_text(preset->certainty)), KEY_OBJECT("keys"));
        table_put_row(&writer, &table, 0);
        PUT(&writer, END_OBJECT, END_OBJECT);
    }
    vp_json_end_array(&writer);
    json_end(&writer);
}

int tile_families_run(const struct family_settings *settings) {
    int code = 0;
    struct family_job job = {
        .stream.csv = settings->csv, .stream.json = settings->json, .compare = settings->compare != NULL};
    if (settings->list_families) {
        if (job.stream.json) list_families_json(); else list_families();
        return 0;
    }
    code = families_of(&job, settings);
    if (!code && !settings->sizes && !settings->operand_count)
        code = complain(EXIT_USAGE, "tile needs sizes (640x480), image files, folders, or --sizes LIST");
    for (size_t i = 0; i < settings->operand_count && !code; i++) code = add_operand(&job, settings->operands[i]);
    if (!code && settings->sizes) code = add_list(&job, settings->sizes);
    if (!code && settings->draw) code = family_draw(&job, settings->draw);
    if (!code && settings->max_tokens) code = family_invert(&job, settings);
    else if (!code) code = family_rows(&job);
    for (size_t i = 0; i < job.size_count; i++) { free(job.sizes[i].file); free(job.sizes[i].error); }
    FREE_ALL(job.sizes, job.families);
    return code;
}
