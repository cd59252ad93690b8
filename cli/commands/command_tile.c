/* command_tile.c: tilings and token counts; needs no model. */
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

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const option_spec TILE_OPTIONS[] = {
    OPTION_PREPROCESS,
    OPTION_TIER,
    OPTION_MAX_CROPS,
    OPTION_CROPS,
    OPTION_VISION_TOKENS,
    {"sizes", TEXT, "LIST", NULL, 0, 0, NULL, "file with one WxH a line (- is stdin)"},
    {"family", TEXT, "NAME", NULL, 0, 0, NULL,
     "another model family (qwen2.5-vl, internvl3 ...); its keys become options: --max_pixels N"},
    {"checkpoint", TEXT, "DIR", NULL, 0, 0, NULL,
     "family and limits from the config files of a folder (no weights are read)"},
    {"compare", TEXT, "A,B,...", NULL, 0, 0, NULL, "several families, a row for each"},
    {"list_families", FLAG, NULL, NULL, 0, 0, NULL, "names, rules, certainty and keys of all families"},
    {"max_tokens", COUNT, "N", NULL, 1, INT64_C(1000000000), NULL,
     "the other way: the largest limit of the family that keeps the images at N tokens"},
    {"percentile", COUNT, "P", "95", 1, 100, NULL, "with --max_tokens and several images: this share of them"},
    {"draw", TEXT, "OUT.png", NULL, 0, 0, NULL, "picture of one image with the family's tiles and global view"},
    OPTION_CSV,
    OPTION_JSON,
    OPTION_HELP,
};

enum { SPECIAL_TIER = 1000000, SPECIAL_MAX_CROPS, SPECIAL_ERROR, SPECIAL_FILE };

#define LAYOUT(member) offsetof(vp_layout, member)
static const column COLUMNS_PAD[] = {
    {"width", LAYOUT(width_px)}, {"height", LAYOUT(height_px)}, {"max_crops", SPECIAL_MAX_CROPS},
    {"rows", LAYOUT(tiling.rows)}, {"cols", LAYOUT(tiling.cols)}, {"num_crops_with_global", LAYOUT(views)},
    {"features", LAYOUT(feature_tokens)}, {"col_tokens", LAYOUT(col_tokens)}, {"marker_tokens", LAYOUT(marker_tokens)},
    {"total_image_tokens", LAYOUT(image_tokens)}, {"target_width_px", LAYOUT(canvas_width_px)}, {"target_height_px", LAYOUT(canvas_height_px)},
    {"scaled_width_px", LAYOUT(resized_width_px)}, {"scaled_height_px", LAYOUT(resized_height_px)},
    {"pad_left", LAYOUT(offset_left_px)}, {"pad_top", LAYOUT(offset_top_px)},
    {"global_scaled_width_px", LAYOUT(global_resized_width_px)}, {"global_scaled_height_px", LAYOUT(global_resized_height_px)},
    {"error", SPECIAL_ERROR}, {"file", SPECIAL_FILE}};

static const column COLUMNS_FILL[] = { /* tier is there for tiers only */
    {"width", LAYOUT(width_px)}, {"height", LAYOUT(height_px)}, {"tier", SPECIAL_TIER}, {"max_crops", SPECIAL_MAX_CROPS},
    {"num_crops", LAYOUT(crops)}, {"rows", LAYOUT(tiling.rows)}, {"cols", LAYOUT(tiling.cols)}, {"num_crops_with_global", LAYOUT(views)},
    {"target_vision_tokens", LAYOUT(theoretical_tokens)}, {"actual_vision_tokens", LAYOUT(feature_tokens)},
    {"col_tokens", LAYOUT(col_tokens)}, {"marker_tokens", LAYOUT(marker_tokens)}, {"sequence_contribution", LAYOUT(image_tokens)},
    {"target_width_px", LAYOUT(canvas_width_px)}, {"target_height_px", LAYOUT(canvas_height_px)},
    {"resized_width_px", LAYOUT(resized_width_px)}, {"resized_height_px", LAYOUT(resized_height_px)},
    {"crop_left", LAYOUT(offset_left_px)}, {"crop_top", LAYOUT(offset_top_px)},
    {"global_resized_width_px", LAYOUT(global_resized_width_px)}, {"global_resized_height_px", LAYOUT(global_resized_height_px)},
    {"error", SPECIAL_ERROR}, {"file", SPECIAL_FILE}};

typedef struct tile_job {
    vp_geometry geometry;
    vp_tile_options tiles;
    const column *columns; int column_count;
    int csv, json, has_files;
    int64_t row_count, refused_count;
    vp_json_writer w;
} tile_job;

/* one row of output; layout NULL: refused because of error, width and height then may be unknown, 0 */
typedef struct tile_row {
    const vp_layout *layout, *partial; /* partial: of a refused size, tiling, canvas and resized sizes alone */
    int64_t width_px, height_px;
    const char *error, *file;
} tile_row;

static int column_is_used(const tile_job *job, const column *c) {
    if (c->offset == SPECIAL_TIER) return job->tiles.tier != NULL;
    if (c->offset == SPECIAL_MAX_CROPS) return job->tiles.rule == VP_TILE_ADAPTIVE || job->tiles.rule == VP_TILE_TIER;
    return c->offset != SPECIAL_FILE || job->has_files;
}
static int column_is_partial(const column *c) { /* known of a refused size */
    static const size_t known[] = {LAYOUT(tiling.rows), LAYOUT(tiling.cols), LAYOUT(views), LAYOUT(canvas_width_px), LAYOUT(canvas_height_px),
                                   LAYOUT(resized_width_px), LAYOUT(resized_height_px), LAYOUT(global_resized_width_px),
                                   LAYOUT(global_resized_height_px)};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) if (c->offset == known[i]) return 1;
    return 0;
}

/* value of a column: a number (returns 1), a text (2), or nothing (0) */
static int column_value(const tile_job *job, const column *c, const tile_row *row, int64_t *number, const char **text) {
    int32_t value;
    switch (c->offset) {
    case SPECIAL_TIER: *text = job->tiles.tier->name; return 2;
    case SPECIAL_MAX_CROPS: *number = job->tiles.max_crops; return 1;
    case SPECIAL_ERROR: *text = row->error; return row->error ? 2 : 0;
    case SPECIAL_FILE: *text = row->file; return row->file ? 2 : 0;
    default: break;
    }
    if (c->offset == offsetof(vp_layout, width_px) || c->offset == offsetof(vp_layout, height_px)) {
        *number = c->offset == offsetof(vp_layout, width_px) ? row->width_px : row->height_px;
        return *number != 0;
    }
    if (!row->layout && !(row->partial && column_is_partial(c))) return 0;
    memcpy(&value, (const char *)(row->layout ? row->layout : row->partial) + c->offset, sizeof value);
    *number = value;
    return 1;
}

static void tile_print_head(tile_job *job) {
    const char *comma = "";
    if (job->json) {
        vp_json_writer_init_sink(&job->w, file_sink, stdout, 2);
        vp_json_begin_array(&job->w);
    } else if (job->csv) {
        for (int i = 0; i < job->column_count; i++) if (column_is_used(job, &job->columns[i])) {
            printf("%s%s", comma, job->columns[i].name);
            comma = ",";
        }
        putchar('\n');
    } else printf("%-13s %-9s %6s %11s %11s %12s %8s %9s\n", "size", "rows,cols", "views", "canvas", "resized", "theoretical", "vision", "sequence");
}

static void tile_print(tile_job *job, const tile_row *row) {
    const vp_layout *l = row->layout;
    const char *comma = "", *text = NULL;
    char size[48], canvas[32], resized[32], tiling[24];
    int64_t number = 0;
    if (!job->row_count++) tile_print_head(job);
    if (!l) job->refused_count++;
    if (job->json) vp_json_begin_object(&job->w);
    for (int i = 0; i < job->column_count && (job->json || job->csv); i++) {
        int kind;
        if (!column_is_used(job, &job->columns[i])) continue;
        kind = column_value(job, &job->columns[i], row, &number, &text);
        if (job->json) {
            vp_json_key(&job->w, job->columns[i].name);
            if (kind == 1) vp_json_int(&job->w, number); else if (kind == 2) json_lossy(&job->w, text); else vp_json_null(&job->w);
            continue;
        }
        fputs(comma, stdout);
        if (kind == 1) printf("%lld", (long long)number); else if (kind == 2) print_csv_text(text);
        comma = ",";
    }
    if (job->json) vp_json_end_object(&job->w);
    else if (job->csv) putchar('\n');
    else {
        snprintf(size, sizeof size, "%lldx%lld", (long long)row->width_px, (long long)row->height_px);
        if (!l) { printf("%-13s refused: %s\n", row->width_px ? size : "-", row->error); return; }
        snprintf(tiling, sizeof tiling, "%d,%d", l->tiling.rows, l->tiling.cols);
        snprintf(canvas, sizeof canvas, "%dx%d", l->canvas_width_px, l->canvas_height_px);
        snprintf(resized, sizeof resized, "%dx%d", l->resized_width_px, l->resized_height_px);
        printf("%-13s %-9s %6d %11s %11s %12d %8d %9d%s%s\n", size, tiling, l->views, canvas, resized, l->theoretical_tokens, l->feature_tokens,
               l->image_tokens,
               row->file ? "  " : "", row->file ? row->file : "");
    }
}

/* What is known of a size that adaptive fit-and-pad refuses: tiling, canvas and the resized sizes, one of them 0 (as goldens/tiling has it).
 * The resized sizes are those of vp_layout_compute, float32 step by step. */
static int tile_refused(const tile_job *job, int32_t width, int32_t height, vp_layout *l) {
    const vp_geometry *g = &job->geometry;
    if (job->tiles.rule != VP_TILE_ADAPTIVE || job->tiles.fit != VP_FIT_PAD) return 0;
    if (vp_tiler_adaptive(g, width, height, job->tiles.max_crops, &l->tiling) != VP_OK) return 0;
    if (vp_select_canvas(g, l->tiling, &l->canvas_width_px, &l->canvas_height_px) != VP_OK) return 0;
    l->views = l->tiling.rows * l->tiling.cols + 1;
    return vp_tiler_shrink(l->canvas_width_px, l->canvas_height_px, width, height, &l->resized_width_px, &l->resized_height_px) == VP_OK
        && vp_tiler_shrink(g->crop_px, g->crop_px, width, height, &l->global_resized_width_px, &l->global_resized_height_px) == VP_OK;
}

/* Makes the row of a size; the error's text goes to `line`. Returns 0 or the exit code it would have alone. */
static int tile_size(const tile_job *job, int64_t width, int64_t height, vp_layout *layout, tile_row *row, char *line, size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = VP_ERR_RANGE;
    row->layout = NULL;
    row->width_px = width;
    row->height_px = height;
    row->error = line;
    if (width < 1 || height < 1 || width > INT32_MAX || height > INT32_MAX) snprintf(line, capacity, "sides must be 1..%d pixels", INT32_MAX);
    else r = vp_layout_compute(&job->geometry, &job->tiles, (int32_t)width, (int32_t)height, layout, &error);
    if (r != VP_OK) {
        if (error.code != VP_OK || error.text[0]) error_line(line, capacity, r, &error);
        if (error.code != VP_OK && tile_refused(job, (int32_t)width, (int32_t)height, layout)) row->partial = layout;
        return EXIT_USAGE;
    }
    row->layout = layout;
    row->error = NULL;
    return 0;
}

/* A size or an image file on the command line. */
static int tile_operand(tile_job *job, const char *text, int alone) {
    vp_error error = {VP_OK, -1, "", ""};
    tile_row row = {NULL, NULL, 0, 0, NULL, NULL};
    vp_layout layout;
    char line[LINE_BYTES], *file = NULL;
    int64_t width = 0, height = 0;
    int32_t w = 0, h = 0;
    size_t bytes = 0;
    int code;
    if (parse_size(text, "x", &width, &height)) code = tile_size(job, width, height, &layout, &row, line, sizeof line);
    else if (access(text, F_OK) && text[strspn(text, "0123456789xX+-.,")] == 0) {
        row.error = "want WIDTHxHEIGHT in pixels, like 640x480";
        code = EXIT_USAGE;
    } else {
        vp_result r = vp_file_read(text, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
        if (r == VP_OK) r = vp_image_size((const uint8_t *)file, bytes, &w, &h, &error);
        free(file);
        if (r == VP_OK) code = tile_size(job, w, h, &layout, &row, line, sizeof line);
        else {
            code = EXIT_INPUT;
            error_line(line, sizeof line, r, &error);
            row.error = line;
        }
        row.file = text;
    }
    if (code && alone) return strstr(row.error, text) ? complain(code, "%s", row.error) : complain(code, "%s: %s", text, row.error);
    if (code && !row.file && !row.width_px) { /* the words themselves, where there is no number to show */
        static char both[LINE_BYTES * 2];
        snprintf(both, sizeof both, "%s: %s", text, row.error);
        row.error = both;
    }
    tile_print(job, &row);
    return 0;
}

static int tile_list(tile_job *job, const char *path) {
    int from_stdin = !strcmp(path, "-");
    FILE *f = from_stdin ? stdin : fopen(path, "rb");
    char *text = NULL, line[LINE_BYTES];
    size_t capacity = 0;
    ssize_t bytes;
    if (!f) return complain(EXIT_INPUT, "--sizes %s: %s", path, strerror(errno));
    errno = 0;
    while ((bytes = getline(&text, &capacity, f)) > 0) {
        tile_row row = {NULL, NULL, 0, 0, line, NULL};
        vp_layout layout;
        int64_t width = 0, height = 0;
        char *start = text;
        while (bytes && isspace((unsigned char)text[bytes - 1])) text[--bytes] = 0;
        start += strspn(start, " \t");
        if (!*start || *start == '#') continue;
        if (!parse_size(start, "x \t,", &width, &height)) snprintf(line, sizeof line, "not a size: %.40s", start);
        else tile_size(job, width, height, &layout, &row, line, sizeof line);
        tile_print(job, &row);
    }
    bytes = ferror(f);
    if (!from_stdin) fclose(f);
    free(text);
    return bytes ? complain(EXIT_INPUT, "--sizes %s: %s", path, strerror(errno)) : 0;
}
static int run_command(const options *o) {
    const char *list = text_of(o, "sizes");
    int64_t width, height;
    tile_job job;
    int code;
    memset(&job, 0, sizeof job);
    job.geometry = vp_geometry_default();
    job.csv = given(o, "csv");
    job.json = given(o, "json");
    if (given(o, "list_families") || takes_keys(o)) return tile_families_run(o);
    if (given(o, "max_tokens") || given(o, "draw"))
        return complain(EXIT_USAGE, "--%s goes with --family, --checkpoint or --compare", given(o, "draw") ? "draw" : "max_tokens");
    if (!list && !o->operand_count) return complain(EXIT_USAGE, "tile needs sizes (640x480), image files, or --sizes LIST");
    if (job.csv && job.json) return complain(EXIT_USAGE, "--csv and --json exclude each other");
    if ((code = tile_options_of(o, &job.tiles)) != 0) return code;
    job.columns = job.tiles.fit == VP_FIT_PAD ? COLUMNS_PAD : COLUMNS_FILL;
    job.column_count = job.tiles.fit == VP_FIT_PAD ? (int)(sizeof COLUMNS_PAD / sizeof *COLUMNS_PAD)
        : (int)(sizeof COLUMNS_FILL / sizeof *COLUMNS_FILL);
    for (size_t i = 0; i < o->operand_count; i++)
        job.has_files |= !parse_size(o->operands[i], "x", &width, &height) && access(o->operands[i], F_OK) == 0;
    for (size_t i = 0; i < o->operand_count && !code; i++) code = tile_operand(&job, o->operands[i], !list && o->operand_count == 1);
    if (!code && list) code = tile_list(&job, list);
    if (!code && !job.row_count) code = complain(EXIT_INPUT, "--sizes %s: there is no size in it", list);
    if (job.json && job.row_count) {
        vp_json_end_array(&job.w);
        vp_json_finish(&job.w);
        putchar('\n');
    }
    if (!code && job.refused_count) code = complain(EXIT_INPUT, "%lld of %lld sizes refused; see their error", (long long)job.refused_count,
                                                    (long long)job.row_count);
    return code;
}

const command command_tile = {
    "tile", "WxH... | FILES | --sizes LIST",
    "tilings, canvas sizes and vision tokens of image sizes; needs no model",
    "vlmprof tile 640x480 1920x1080 --tier medium --csv\n"
    "  vlmprof tile --family qwen2.5-vl --max_pixels 1003520 640x480 photo.jpg\n"
    "  vlmprof tile --compare qwen3-vl,internvl3,smolvlm 1920x1080",
    SIZE_MAX, TILE_OPTIONS, sizeof TILE_OPTIONS / sizeof *TILE_OPTIONS, "family checkpoint compare", run_command};
