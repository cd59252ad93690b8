/* command_tile.c: prints tilings and token counts of image sizes; needs no model. Each size or image file, from the
 * command line or a list, becomes a row of text, CSV or JSON. Molmo's own tiling is computed here, the other families
 * in tile/tile_families.c. */
#include "base/console.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "base/table.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "tile/family.h"

static const struct option_spec TILE_OPTIONS[] = {
    OPTION_GROUP("tiling"),
    OPTION_PREPROCESS,
    OPTION_TIER,
    OPTION_MAX_CROPS,
    OPTION_CROPS,
    OPTION_VISION_TOKENS,
    {"sizes", TEXT, "LIST", NULL, 0, 0, NULL, "file with one WxH per line (- is stdin)"},
    OPTION_GROUP("other model families"),
    {"family", TEXT, "NAME", NULL, 0, 0, NULL,
     "another model family (qwen2.5-vl, internvl3 ...); its limits become options: --max_pixels N",
     .excludes = "checkpoint compare"},
    {"checkpoint", TEXT, "DIR", NULL, 0, 0, NULL,
     "read the family and its limits from a folder's config files (weights are not read)", .excludes = "compare"},
    {"compare", TEXT, "A,B,...", NULL, 0, 0, NULL, "compare several families, one row for each"},
    {"list_families", FLAG, NULL, NULL, 0, 0, NULL,
     "list all families, with their rules, limits and how well they are verified"},
    {"max_tokens", COUNT, "N", NULL, 1, INT64_C(1000000000), NULL,
     "in reverse: find the family's largest limit that keeps the images within N tokens",
     .needs = "family checkpoint compare"},
    {"percentile", COUNT, "P", "95", 1, 100, NULL, "with --max_tokens and several images: percentage of images that "
                                                   "must fit in --max_tokens",
     .needs = "max_tokens"},
    OPTION_GROUP("output"),
    OPTION_CSV,
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

/* One row of the output; negative numbers are unknown. */
struct tile_row {
    vp_layout layout; /* for a rejected size, only tiling, canvas and resized sizes may be set */
    int64_t width_px, height_px;
    const char *error, *file, *tier; /* NULL if none */
    int max_crops;
};
enum { WITH_TIER = 1, WITH_MAX_CROPS = 2, WITH_FILES = 4 };
#define ROW(member) CELL(struct tile_row, member)
#define COUNT_OF(key, member) {ROW(layout.member), key, .rules = COLUMN_FROM_0}
#define SIZE_OF {ROW(width_px), "width", .rules = COLUMN_FROM_0}, {ROW(height_px), "height", .rules = COLUMN_FROM_0}
#define MAX_CROPS {ROW(max_crops), "max_crops", .in = WITH_MAX_CROPS}
#define TILING COUNT_OF("rows", tiling.rows), COUNT_OF("cols", tiling.cols), COUNT_OF("num_crops_with_global", views)
#define TARGET COUNT_OF("target_width_px", canvas_width_px), COUNT_OF("target_height_px", canvas_height_px)
#define ENDING {ROW(error), "error"}, {ROW(file), "file", .in = WITH_FILES}
#define SHOWN(member, heading, columns) {ROW(layout.member), NULL, heading, .width = columns}
#define SHOWN_PAIR(first, second, heading, columns, between) \
    { CELL_PAIR(struct tile_row, first, second), NULL, heading, .format = between, .width = columns }
#define AS_TEXT \
    {CELL_PAIR(struct tile_row, width_px, height_px), NULL, "size", .format = "x", .width = -13, \
     .rules = COLUMN_NAMES | COLUMN_FROM_1}, \
    SHOWN_PAIR(layout.tiling.rows, layout.tiling.cols, "rows,cols", -9, ","), SHOWN(views, "views", 6), \
    SHOWN_PAIR(layout.canvas_width_px, layout.canvas_height_px, "canvas", 11, "x"), \
    SHOWN_PAIR(layout.resized_width_px, layout.resized_height_px, "resized", 11, "x"), \
    SHOWN(theoretical_tokens, "theoretical", 12), SHOWN(feature_tokens, "vision", 8), \
    SHOWN(image_tokens, "sequence", 9), {ROW(file), NULL, ""}
static const struct table_column COLUMNS_PAD[] = {
    SIZE_OF, MAX_CROPS, TILING, COUNT_OF("features", feature_tokens), COUNT_OF("col_tokens", col_tokens),
    COUNT_OF("marker_tokens", marker_tokens), COUNT_OF("total_image_tokens", image_tokens), TARGET,
    COUNT_OF("scaled_width_px", resized_width_px), COUNT_OF("scaled_height_px", resized_height_px),
    COUNT_OF("pad_left", offset_left_px), COUNT_OF("pad_top", offset_top_px),
    COUNT_OF("global_scaled_width_px", global_resized_width_px),
    COUNT_OF("global_scaled_height_px", global_resized_height_px), ENDING, AS_TEXT};
static const struct table_column COLUMNS_FILL[] = {
    SIZE_OF, {ROW(tier), "tier", .in = WITH_TIER}, MAX_CROPS, COUNT_OF("num_crops", crops), TILING,
    COUNT_OF("target_vision_tokens", theoretical_tokens), COUNT_OF("actual_vision_tokens", feature_tokens),
    COUNT_OF("col_tokens", col_tokens), COUNT_OF("marker_tokens", marker_tokens),
    COUNT_OF("sequence_contribution", image_tokens), TARGET, COUNT_OF("resized_width_px", resized_width_px),
    COUNT_OF("resized_height_px", resized_height_px), COUNT_OF("crop_left", offset_left_px),
    COUNT_OF("crop_top", offset_top_px), COUNT_OF("global_resized_width_px", global_resized_width_px),
    COUNT_OF("global_resized_height_px", global_resized_height_px), ENDING, AS_TEXT};

struct tile_job {
    vp_geometry geometry;
    vp_tile_options tiles;
    struct table table; /* the columns of a single row */
    struct table_stream stream;
};

/* Returns 1 if adaptive fit-and-pad rejects the size. *layout then has the tiling, the canvas and the resized sizes,
 * one of which is 0. The resized sizes are computed as in vp_layout_compute, in float32 step by step. */
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

/* Prints the row of a size. If it is rejected and is the only one (`alone`), prints an error instead and returns an
 * exit code. Otherwise returns 0. */
static int tile_row(struct tile_job *job, const struct given_size *size, int alone) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = VP_ERR_RANGE;
    const int32_t width = (int32_t)size->width, height = (int32_t)size->height;
    char line[LINE_BYTES] = "";
    struct tile_row row;
    memset(&row, 0xff, sizeof row); /* all values are unknown */
    row.file = size->file;
    row.error = NULL;
    row.tier = job->tiles.tier ? job->tiles.tier->name : NULL;
    row.max_crops = job->tiles.max_crops;
    if (!size->error) {
        row.width_px = size->width;
        row.height_px = size->height;
    }
    if (size->error) snprintf(line, sizeof line, "%s", size->error);
    else if (size->width < 1 || size->height < 1 || size->width > INT32_MAX || size->height > INT32_MAX)
        snprintf(line, sizeof line, "%lldx%lld: sides must be 1 to %d pixels", (long long)size->width,
                 (long long)size->height, INT32_MAX);
    else result = vp_layout_compute(&job->geometry, &job->tiles, width, height, &row.layout, &error);
    if (result != VP_OK) {
        row.error = line;
        if (!line[0]) error_line(line, sizeof line, result, &error);
        if (alone) return size_complain(size, line);
        if (error.code == VP_OK || !tile_has_partial(job, width, height, &row.layout))
            memset(&row.layout, 0xff, sizeof row.layout);
    }
    job->table.rows = &row;
    table_stream_row(&job->stream, &job->table, row.error);
    return 0;
}
/* The rows of other families than Molmo's own. Returns the exit code. */
static int run_families(const struct options *options) {
    static const char *const foreign[] = {"preprocess", "tier", "crops", "vision_tokens"};
    const struct family_settings settings = {
        .family = text_of(options, "family"), .checkpoint = text_of(options, "checkpoint"),
        .compare = text_of(options, "compare"), .keys = family_keys_of(options), .sizes = text_of(options, "sizes"),
        .operands = options->operands, .operand_count = options->operand_count,
        .max_tokens = number_of(options, "max_tokens"), .percentile = number_of(options, "percentile"),
        .csv = is_given(options, "csv"), .json = is_given(options, "json"),
        .list_families = is_given(options, "list_families")};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign && !settings.list_families; i++)
        if (is_given(options, foreign[i]))
            return complain(EXIT_USAGE, "--%s is only for Molmo's own tiling; remove it when giving a "
                                        "family", foreign[i]);
    return tile_families_run(&settings);
}
static int run_command(const struct options *options) {
    struct size_list sizes = {NULL, 0, 0};
    const struct tile_row no_row = {.width_px = -1};
    int code;
    struct tile_job job = {.geometry = vp_geometry_default(), .stream.csv = is_given(options, "csv"),
                           .stream.json = is_given(options, "json")};
    if (is_given(options, "list_families") || has_family_keys(options)) return run_families(options);
    if ((code = tile_options_of(options, &job.tiles)) != 0) return code;
    job.table = job.tiles.fit == VP_FIT_PAD ? (struct table)TABLE(COLUMNS_PAD, &no_row, 1, NULL, 0)
                                            : (struct table)TABLE(COLUMNS_FILL, &no_row, 1, NULL, 0);
    if (job.tiles.tier) job.table.has |= WITH_TIER;
    if (job.tiles.rule == VP_TILE_ADAPTIVE || job.tiles.rule == VP_TILE_TIER) job.table.has |= WITH_MAX_CROPS;
    code = sizes_read(&sizes, options->operands, options->operand_count, text_of(options, "sizes"));
    if (sizes.has_files) job.table.has |= WITH_FILES;
    for (size_t i = 0; i < sizes.count && !code; i++) code = tile_row(&job, &sizes.items[i], sizes.count == 1);
    sizes_free(&sizes);
    table_stream_end(&job.stream);
    if (!code && job.stream.refused_count)
        code = complain(EXIT_INPUT, "%lld of %lld sizes rejected; see their errors",
                        (long long)job.stream.refused_count, (long long)job.stream.row_count);
    return code;
}

const struct command command_tile = {
    "tile", "WxH... | FILES | --sizes LIST",
    "show tilings, canvas sizes and vision tokens for image sizes; needs no model",
    "vlmprof tile --family qwen2.5-vl --max_pixels 1003520 640x480 photo.jpg\n"
    "  vlmprof tile --compare qwen3-vl,internvl3,smolvlm 1920x1080",
    SIZE_MAX, COMMAND_OPTIONS(TILE_OPTIONS), "family checkpoint compare", run_command};
