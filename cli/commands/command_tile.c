/* command_tile.c: tilings and token counts of image sizes; needs no model.
 * Sizes, image files and a list come in; each becomes a row on stdout as text, CSV or JSON. Molmo's own tiling is
 * computed here, the other families in tile/tile_families.c. */
#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "tile/tile_families.h"
#include "tile/tile_options.h"
#include "vlmprof.h"
#include "vlmprof_file.h"
#include "vlmprof_image.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option_spec TILE_OPTIONS[] = {
    OPTION_GROUP("tiling"),
    OPTION_PREPROCESS,
    OPTION_TIER,
    OPTION_MAX_CROPS,
    OPTION_CROPS,
    OPTION_VISION_TOKENS,
    {"sizes", TEXT, "LIST", NULL, 0, 0, NULL, "file with one WxH a line (- is stdin)"},
    OPTION_GROUP("other model families"),
    {"family", TEXT, "NAME", NULL, 0, 0, NULL,
     "another model family (qwen2.5-vl, internvl3 ...); its keys become options: --max_pixels N",
     .excludes = "checkpoint compare"},
    {"checkpoint", TEXT, "DIR", NULL, 0, 0, NULL,
     "family and limits from the config files of a folder (no weights are read)", .excludes = "compare"},
    {"compare", TEXT, "A,B,...", NULL, 0, 0, NULL, "several families, a row for each"},
    {"list_families", FLAG, NULL, NULL, 0, 0, NULL, "names, rules, certainty and keys of all families"},
    {"max_tokens", COUNT, "N", NULL, 1, INT64_C(1000000000), NULL,
     "the other way: the largest limit of the family that keeps the images at N tokens",
     .needs = "family checkpoint compare"},
    {"percentile", COUNT, "P", "95", 1, 100, NULL, "with --max_tokens and several images: this share of them",
     .needs = "max_tokens"},
    {"draw", TEXT, "OUT.png", NULL, 0, 0, NULL, "picture of one image with the family's tiles and global view",
     .needs = "family checkpoint compare"},
    OPTION_GROUP("output"),
    OPTION_CSV,
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

/* Columns that are no member of vp_layout, instead of an offset. */
enum { SPECIAL_TIER = 1000000, SPECIAL_MAX_CROPS, SPECIAL_ERROR, SPECIAL_FILE };

#define LAYOUT(member) offsetof(vp_layout, member)
static const struct column COLUMNS_PAD[] = {{"width", LAYOUT(width_px)},
                                            {"height", LAYOUT(height_px)},
                                            {"max_crops", SPECIAL_MAX_CROPS},
                                            {"rows", LAYOUT(tiling.rows)},
                                            {"cols", LAYOUT(tiling.cols)},
                                            {"num_crops_with_global", LAYOUT(views)},
                                            {"features", LAYOUT(feature_tokens)},
                                            {"col_tokens", LAYOUT(col_tokens)},
                                            {"marker_tokens", LAYOUT(marker_tokens)},
                                            {"total_image_tokens", LAYOUT(image_tokens)},
                                            {"target_width_px", LAYOUT(canvas_width_px)},
                                            {"target_height_px", LAYOUT(canvas_height_px)},
                                            {"scaled_width_px", LAYOUT(resized_width_px)},
                                            {"scaled_height_px", LAYOUT(resized_height_px)},
                                            {"pad_left", LAYOUT(offset_left_px)},
                                            {"pad_top", LAYOUT(offset_top_px)},
                                            {"global_scaled_width_px", LAYOUT(global_resized_width_px)},
                                            {"global_scaled_height_px", LAYOUT(global_resized_height_px)},
                                            {"error", SPECIAL_ERROR},
                                            {"file", SPECIAL_FILE}};

/* `tier` is shown for tiers only. */
static const struct column COLUMNS_FILL[] = {
                                             {"width", LAYOUT(width_px)},
                                             {"height", LAYOUT(height_px)},
                                             {"tier", SPECIAL_TIER},
                                             {"max_crops", SPECIAL_MAX_CROPS},
                                             {"num_crops", LAYOUT(crops)},
                                             {"rows", LAYOUT(tiling.rows)},
                                             {"cols", LAYOUT(tiling.cols)},
                                             {"num_crops_with_global", LAYOUT(views)},
                                             {"target_vision_tokens", LAYOUT(theoretical_tokens)},
                                             {"actual_vision_tokens", LAYOUT(feature_tokens)},
                                             {"col_tokens", LAYOUT(col_tokens)},
                                             {"marker_tokens", LAYOUT(marker_tokens)},
                                             {"sequence_contribution", LAYOUT(image_tokens)},
                                             {"target_width_px", LAYOUT(canvas_width_px)},
                                             {"target_height_px", LAYOUT(canvas_height_px)},
                                             {"resized_width_px", LAYOUT(resized_width_px)},
                                             {"resized_height_px", LAYOUT(resized_height_px)},
                                             {"crop_left", LAYOUT(offset_left_px)},
                                             {"crop_top", LAYOUT(offset_top_px)},
                                             {"global_resized_width_px", LAYOUT(global_resized_width_px)},
                                             {"global_resized_height_px", LAYOUT(global_resized_height_px)},
                                             {"error", SPECIAL_ERROR},
                                             {"file", SPECIAL_FILE}};

struct tile_job {
    vp_geometry geometry;
    vp_tile_options tiles;
    const struct column *columns; int column_count; /* of --csv and --json */
    int csv, json; /* truth: the option is given */
    int has_files; /* truth: an operand is a file, so rows show file names */
    int64_t row_count, refused_count;
    vp_json_writer writer; /* of --json, to stdout */
};

/* One row of the output. */
struct tile_row {
    const vp_layout *layout;     /* NULL: the size is refused, `error` says why */
    const vp_layout *partial;    /* of a refused size: tiling, canvas and resized sizes; NULL: not known */
    int64_t width_px, height_px; /* 0: not known */
    const char *error, *file;    /* NULL: none */
};

static int column_is_used(const struct tile_job *job, const struct column *column) {
    if (column->offset == SPECIAL_TIER) return job->tiles.tier != NULL;
    if (column->offset == SPECIAL_MAX_CROPS)
        return job->tiles.rule == VP_TILE_ADAPTIVE || job->tiles.rule == VP_TILE_TIER;
    return column->offset != SPECIAL_FILE || job->has_files;
}
/* Truth: the column is known of a refused size too (tile_row.partial). */
static int column_is_partial(const struct column *column) {
    static const size_t known[] = {LAYOUT(tiling.rows),
                                   LAYOUT(tiling.cols),
                                   LAYOUT(views),
                                   LAYOUT(canvas_width_px),
                                   LAYOUT(canvas_height_px),
                                   LAYOUT(resized_width_px),
                                   LAYOUT(resized_height_px),
                                   LAYOUT(global_resized_width_px),
                                   LAYOUT(global_resized_height_px)};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) if (column->offset == known[i]) return 1;
    return 0;
}

typedef enum value_kind { VALUE_NONE, VALUE_NUMBER, VALUE_TEXT } value_kind;
/* The value of a column in a row: sets *number or *text and returns which, or VALUE_NONE. */
static value_kind column_value(const struct tile_job *job, const struct column *column, const struct tile_row *row,
                               int64_t *number, const char **text) {
    int32_t value;
    switch (column->offset) {
    case SPECIAL_TIER: *text = job->tiles.tier->name; return VALUE_TEXT;
    case SPECIAL_MAX_CROPS: *number = job->tiles.max_crops; return VALUE_NUMBER;
    case SPECIAL_ERROR: *text = row->error; return row->error ? VALUE_TEXT : VALUE_NONE;
    case SPECIAL_FILE: *text = row->file; return row->file ? VALUE_TEXT : VALUE_NONE;
    default: break;
    }
    if (column->offset == offsetof(vp_layout, width_px) || column->offset == offsetof(vp_layout, height_px)) {
        *number = column->offset == offsetof(vp_layout, width_px) ? row->width_px : row->height_px;
        return *number ? VALUE_NUMBER : VALUE_NONE;
    }
    if (!row->layout && !(row->partial && column_is_partial(column))) return VALUE_NONE;
    memcpy(&value, (const char *)(row->layout ? row->layout : row->partial) + column->offset, sizeof value);
    *number = value;
    return VALUE_NUMBER;
}

static void tile_print_head(struct tile_job *job) {
    const char *comma = "";
    if (job->json) {
        vp_json_writer_init_sink(&job->writer, file_sink, stdout, 2);
        vp_json_begin_array(&job->writer);
    } else if (job->csv) {
        for (int i = 0; i < job->column_count; i++) if (column_is_used(job, &job->columns[i])) {
            print_plain("%s%s", comma, job->columns[i].name);
            comma = ",";
        }
        putchar('\n');
    } else
        print_plain("%-13s %-9s %6s %11s %11s %12s %8s %9s\n", "size", "rows,cols", "views", "canvas", "resized",
                    "theoretical", "vision", "sequence");
}

static void tile_print_json(struct tile_job *job, const struct tile_row *row) {
    vp_json_writer *writer = &job->writer;
    vp_json_begin_object(writer);
    for (int i = 0; i < job->column_count; i++) {
        const struct column *column = &job->columns[i];
        int64_t number = 0;
        const char *text = NULL;
        if (!column_is_used(job, column)) continue;
        vp_json_key(writer, column->name);
        switch (column_value(job, column, row, &number, &text)) {
        case VALUE_NUMBER: vp_json_int(writer, number); break;
        case VALUE_TEXT: json_lossy(writer, text); break;
        case VALUE_NONE: vp_json_null(writer); break;
        }
    }
    vp_json_end_object(writer);
}
static void tile_print_csv(const struct tile_job *job, const struct tile_row *row) {
    const char *comma = "";
    for (int i = 0; i < job->column_count; i++) {
        const struct column *column = &job->columns[i];
        int64_t number = 0;
        const char *text = NULL;
        if (!column_is_used(job, column)) continue;
        fputs(comma, stdout);
        comma = ",";
        switch (column_value(job, column, row, &number, &text)) {
        case VALUE_NUMBER: print_plain("%lld", (long long)number); break;
        case VALUE_TEXT: print_csv_text(text); break;
        case VALUE_NONE: break;
        }
    }
    putchar('\n');
}
static void tile_print_text(const struct tile_row *row) {
    const vp_layout *layout = row->layout;
    char size[48], canvas[32], resized[32], tiling[24];
    snprintf(size, sizeof size, "%lldx%lld", (long long)row->width_px, (long long)row->height_px);
    if (!layout) {
        print_plain("%-13s refused: %s\n", row->width_px ? size : "-", row->error);
        return;
    }
    snprintf(tiling, sizeof tiling, "%d,%d", layout->tiling.rows, layout->tiling.cols);
    snprintf(canvas, sizeof canvas, "%dx%d", layout->canvas_width_px, layout->canvas_height_px);
    snprintf(resized, sizeof resized, "%dx%d", layout->resized_width_px, layout->resized_height_px);
    print_plain("%-13s %-9s %6d %11s %11s %12d %8d %9d%s%s\n", size, tiling, layout->views, canvas, resized,
                layout->theoretical_tokens, layout->feature_tokens, layout->image_tokens, row->file ? "  " : "",
                row->file ? row->file : "");
}
/* Prints a row, after the head if it is the first, and counts it. */
static void tile_print(struct tile_job *job, const struct tile_row *row) {
    if (!job->row_count++) tile_print_head(job);
    if (!row->layout) job->refused_count++;
    if (job->json) tile_print_json(job, row);
    else if (job->csv) tile_print_csv(job, row);
    else tile_print_text(row);
}

/* Truth: adaptive fit-and-pad refuses the size, and *layout now has the tiling, the canvas and the resized sizes, one
 * of which is 0. The resized sizes are computed as vp_layout_compute does, in float32 step by step. */
static int tile_has_partial(const struct tile_job *job, int32_t width, int32_t height, vp_layout *layout) {
    const vp_geometry *geometry = &job->geometry;
    if (job->tiles.rule != VP_TILE_ADAPTIVE || job->tiles.fit != VP_FIT_PAD) return 0;
    if (vp_tiler_adaptive(geometry, width, height, job->tiles.max_crops, &layout->tiling) != VP_OK) return 0;
    if (vp_select_canvas(geometry, layout->tiling, &layout->canvas_width_px, &layout->canvas_height_px) != VP_OK)
        return 0;
    layout->views = layout->tiling.rows * layout->tiling.cols + 1;
    return vp_tiler_shrink(layout->canvas_width_px, layout->canvas_height_px, width, height, &layout->resized_width_px,
                           &layout->resized_height_px)
               == VP_OK
           && vp_tiler_shrink(geometry->crop_px, geometry->crop_px, width, height, &layout->global_resized_width_px,
                              &layout->global_resized_height_px)
                  == VP_OK;
}

/* Fills the row of a size. The text of an error goes to `line`, which the row then points to, as to `layout`. Returns
 * 0, or the exit code of the command if this is its only size. */
static int tile_size(const struct tile_job *job, int64_t width, int64_t height, vp_layout *layout, struct tile_row *row,
                     char *line, size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = VP_ERR_RANGE;
    row->layout = NULL;
    row->width_px = width;
    row->height_px = height;
    row->error = line;
    if (width < 1 || height < 1 || width > INT32_MAX || height > INT32_MAX)
        snprintf(line, capacity, "sides must be 1..%d pixels", INT32_MAX);
    else result = vp_layout_compute(&job->geometry, &job->tiles, (int32_t)width, (int32_t)height, layout, &error);
    if (result != VP_OK) {
        if (error.code != VP_OK || error.text[0]) error_line(line, capacity, result, &error);
        if (error.code != VP_OK && tile_has_partial(job, (int32_t)width, (int32_t)height, layout))
            row->partial = layout;
        return EXIT_USAGE;
    }
    row->layout = layout;
    row->error = NULL;
    return 0;
}

/* Prints the row of a size or an image file. Returns 0, or an exit code when it is refused and the only one (`alone`):
 * then an error is printed instead. */
static int tile_operand(struct tile_job *job, const char *text, int alone) {
    vp_error error = {VP_OK, -1, "", ""};
    struct tile_row row = {NULL, NULL, 0, 0, NULL, NULL};
    vp_layout layout;
    char line[LINE_BYTES], *file = NULL;
    int64_t width = 0, height = 0;
    int32_t width_px = 0, height_px = 0;
    size_t bytes = 0;
    int code;
    if (can_parse_size(text, SIZE_SEPARATORS, &width, &height))
        code = tile_size(job, width, height, &layout, &row, line, sizeof line);
    else if (access(text, F_OK) && text[strspn(text, "0123456789xX+-.,")] == 0) {
        row.error = "want WIDTHxHEIGHT in pixels, like 640x480";
        code = EXIT_USAGE;
    } else {
        vp_result result = vp_file_read(text, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
        if (result == VP_OK) result = vp_image_size((const uint8_t *)file, bytes, &width_px, &height_px, &error);
        free(file);
        if (result == VP_OK) code = tile_size(job, width_px, height_px, &layout, &row, line, sizeof line);
        else {
            code = EXIT_INPUT;
            error_line(line, sizeof line, result, &error);
            row.error = line;
        }
        row.file = text;
    }
    if (code && alone)
        return strstr(row.error, text) ? complain(code, "%s", row.error) : complain(code, "%s: %s", text, row.error);
    if (code && !row.file && !row.width_px) { /* there is no number to show: the error repeats the words */
        static char both[LINE_BYTES * 2];
        snprintf(both, sizeof both, "%s: %s", text, row.error);
        row.error = both;
    }
    tile_print(job, &row);
    return 0;
}

static void tile_line(void *user, const char *line) {
    struct tile_job *job = user;
    char reason[LINE_BYTES];
    struct tile_row row = {NULL, NULL, 0, 0, reason, NULL};
    vp_layout layout;
    int64_t width = 0, height = 0;
    if (can_parse_size(line, SIZE_LIST_SEPARATORS, &width, &height))
        tile_size(job, width, height, &layout, &row, reason, sizeof reason);
    else snprintf(reason, sizeof reason, "not a size: %.40s", line);
    tile_print(job, &row);
}
static int run_command(const struct options *options) {
    const char *list = text_of(options, "sizes");
    int64_t width, height;
    struct tile_job job;
    int code;
    memset(&job, 0, sizeof job);
    job.geometry = vp_geometry_default();
    job.csv = is_given(options, "csv");
    job.json = is_given(options, "json");
    if (is_given(options, "list_families") || has_family_keys(options)) return tile_families_run(options);
    if (!list && !options->operand_count)
        return complain(EXIT_USAGE, "tile needs sizes (640x480), image files, or --sizes LIST");
    if ((code = tile_options_of(options, &job.tiles)) != 0) return code;
    job.columns = job.tiles.fit == VP_FIT_PAD ? COLUMNS_PAD : COLUMNS_FILL;
    job.column_count = job.tiles.fit == VP_FIT_PAD ? (int)(sizeof COLUMNS_PAD / sizeof *COLUMNS_PAD)
        : (int)(sizeof COLUMNS_FILL / sizeof *COLUMNS_FILL);
    for (size_t i = 0; i < options->operand_count; i++)
        job.has_files |= !can_parse_size(options->operands[i], SIZE_SEPARATORS, &width, &height)
                         && access(options->operands[i], F_OK) == 0;
    for (size_t i = 0; i < options->operand_count && !code; i++)
        code = tile_operand(&job, options->operands[i], !list && options->operand_count == 1);
    if (!code && list) code = size_list_read(list, tile_line, &job);
    if (!code && !job.row_count) code = complain(EXIT_INPUT, "--sizes %s: there is no size in it", list);
    if (job.json && job.row_count) {
        vp_json_end_array(&job.writer);
        vp_json_finish(&job.writer);
        putchar('\n');
    }
    if (!code && job.refused_count)
        code = complain(EXIT_INPUT, "%lld of %lld sizes refused; see their error", (long long)job.refused_count,
                        (long long)job.row_count);
    return code;
}

const struct command command_tile = {
    "tile", "WxH... | FILES | --sizes LIST",
    "tilings, canvas sizes and vision tokens of image sizes; needs no model",
    "vlmprof tile 640x480 1920x1080 --tier medium --csv\n"
    "  vlmprof tile --family qwen2.5-vl --max_pixels 1003520 640x480 photo.jpg\n"
    "  vlmprof tile --compare qwen3-vl,internvl3,smolvlm 1920x1080",
    SIZE_MAX, TILE_OPTIONS, sizeof TILE_OPTIONS / sizeof *TILE_OPTIONS, "family checkpoint compare", run_command};
