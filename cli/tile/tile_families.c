/* tile_families.c: the tile command for other model families: --family, --checkpoint, --compare, --list_families. Sizes
 * and families are collected first. Then each pair becomes a row of token counts (family_rows), or the largest limit of
 * a family is found (family_invert). Rows are printed as text, CSV or JSON. */
#include "tile/family.h"

#include "base/console.h"
#include "base/files.h"
#include "base/table.h"
#include "vlmprof_families.h"

struct family_job {
    vp_family *families; size_t family_count;
    struct size_list sizes;
    int compare; /* 1 if the option is given */
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

static int has_sides_in_range(const struct given_size *size) {
    return size->width >= 1 && size->height >= 1 && size->width <= VP_FAMILY_PX_LIMIT
           && size->height <= VP_FAMILY_PX_LIMIT;
}

/* Finds the family that a checkpoint's config files describe. Returns 0 or an exit code. */
static int families_of_checkpoint(struct family_job *job, const char *folder) {
    struct model_files files = {0};
    vp_error error = {VP_OK, -1, "", ""};
    int code = !no_folder_reason(folder) ? model_files_read(folder, 0, &files, NULL)
                                         : complain(EXIT_INPUT, "%s: %s", folder, no_folder_reason(folder));
    if (!code && !files.json[0] && !files.json[1] && !files.json[2])
        code = complain(EXIT_INPUT, "%s: there is neither preprocessor_config.json nor config.json", folder);
    vp_result result = VP_OK;
    if (!code) result = vp_family_from_config(ADDED(job->families, job->family_count), files.json, &error);
    model_files_free(&files);
    return result == VP_OK ? code : complain_result(EXIT_INPUT, folder, result, &error);
}
/* Finds the families that the settings name, and sets their keys. Returns 0 or an exit code. */
static int families_of(struct family_job *job, const struct family_settings *settings) {
    const char *wanted = job->compare ? settings->compare : settings->family;
    int code = settings->checkpoint ? families_of_checkpoint(job, settings->checkpoint) : 0;
    for (; !code && wanted; wanted = job->compare && strchr(wanted, ',') ? strchr(wanted, ',') + 1 : NULL) {
        size_t bytes = job->compare ? strcspn(wanted, ",") : strlen(wanted);
        char *name = copy_text(wanted, bytes);
        code = family_by_name(job->compare ? "compare" : "family", name, ADDED(job->families, job->family_count));
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
    table.has = (job->stream.json || job->compare || is_constant(family) ? WITH_FAMILY : 0)
                | (job->sizes.has_files ? WITH_FILES : 0);
    return table;
}
/* Counts one image in one family and prints its row. If it is rejected and is the only row (`alone`), prints an error
 * instead and returns an exit code. Otherwise returns 0. */
static int family_row(struct family_job *job, const vp_family *family, const struct given_size *size, int alone) {
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
    if (result != VP_OK && alone) return size_complain(size, reason);
    if (result != VP_OK) {
        line.error = reason;
        memset(&line.count, 0xff, sizeof line.count); /* below 0 */
    }
    table_stream_row(&job->stream, &table, line.error);
    return 0;
}
static int family_rows(struct family_job *job) {
    const int alone = job->sizes.count == 1 && job->family_count == 1;
    int code = 0;
    for (size_t i = 0; i < job->sizes.count && !code; i++)
        for (size_t k = 0; k < job->family_count && !code; k++)
            code = family_row(job, &job->families[k], &job->sizes.items[i], alone);
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
    (void)context, (void)own;
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
    for (size_t i = 0; i < job->sizes.count; i++) {
        const struct given_size *size = &job->sizes.items[i];
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
    int32_t(*sizes)[2] = resize(NULL, job->sizes.count, sizeof *sizes);
    struct text_buffer out = {NULL, 0, 0};
    const struct table table = TABLE(LIMIT_COLUMNS, limits, job->family_count, NULL, 0);
    int code = sizes_of(job, sizes);
    for (size_t k = 0; k < job->family_count && !code; k++) {
        const vp_family *family = &job->families[k];
        const vp_family_key *knob = vp_family_knob(family);
        struct family_limit limit = {family->preset->name, knob ? knob->name : NULL, NULL, -1, settings->max_tokens,
                                     settings->percentile, (int64_t)job->sizes.count, 0};
        int64_t value = -1;
        vp_result result =
            vp_family_largest(family, (const int32_t(*)[2])sizes, job->sizes.count, (double)limit.percentile / 100.0,
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

/* Prints the presets with their keys and their published values, as text and as JSON. */
static void list_families(void) {
    static vp_family family;
    const vp_family_preset *preset;
    print_plain("%-27s %-15s %-10s keys and their published values\n", "family", "rule", "certainty");
    for (int32_t i = 0; (preset = vp_family_at(i)) != NULL; i++) {
        char text[64];
        vp_family_default(preset, &family);
        print_plain("%-27s %-15s %-10s", preset->name, preset->rule, vp_certainty_text(preset->certainty));
        for (int k = 0; k < VP_FAMILY_KEYS_LIMIT; k++) {
            if (!preset->keys[k].name) continue;
            key_text(&family, &preset->keys[k], text, sizeof text);
            print_plain(" %s=%s", preset->keys[k].name, text);
        }
        putchar('\n');
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
    struct family_job job = {
        .stream.csv = settings->csv, .stream.json = settings->json, .compare = settings->compare != NULL};
    if (settings->list_families) {
        if (job.stream.json) list_families_json(); else list_families();
        return 0;
    }
    int code = families_of(&job, settings);
    if (!code) code = sizes_read(&job.sizes, settings->operands, settings->operand_count, settings->sizes);
    if (!code && settings->max_tokens) code = family_invert(&job, settings);
    else if (!code) code = family_rows(&job);
    sizes_free(&job.sizes);
    free(job.families);
    return code;
}
