/* tile_families.c: tile with --family, --checkpoint or --compare: token counts of other model families.
 * Sizes are gathered first, then counted, inverted or drawn. */
#include "tile/tile_families.h"

#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "tile/image.h"
#include "tile/tile_options.h"
#include "vlmprof.h"
#include "vlmprof_families.h"
#include "vlmprof_file.h"
#include "vlmprof_image.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb/stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

typedef struct image_size { int64_t width, height; char *file, *error; int code; } image_size; /* error: no size; code: the exit code it has alone */
typedef struct family_job {
    vp_family *families; size_t family_count;
    image_size *sizes; size_t size_count, size_capacity;
    int csv, json, compare, has_files;
    int64_t row_count, refused_count;
    vp_json_writer w;
} family_job;
#define COUNTED(member) offsetof(vp_vision_count, member)
static const column FAMILY_COLUMNS[] = { /* int64 of vp_vision_count */
    {"resized_width", COUNTED(resized_width_px)}, {"resized_height", COUNTED(resized_height_px)}, {"rows", COUNTED(rows)}, {"cols", COUNTED(cols)},
    {"tiles_with_global", COUNTED(views)}, {"feature_tokens", COUNTED(feature_tokens)}, {"separator_tokens", COUNTED(separator_tokens)},
    {"marker_tokens", COUNTED(marker_tokens)}, {"total_tokens", COUNTED(total_tokens)}};

enum { FAMILY_COLUMN_COUNT = sizeof FAMILY_COLUMNS / sizeof *FAMILY_COLUMNS };

/* ---- sizes */
static image_size *add_size(family_job *job, int64_t width, int64_t height, const char *file) {
    image_size *s;
    if (job->size_count == job->size_capacity) {
        job->size_capacity = job->size_capacity * 2 + 16;
        job->sizes = resize(job->sizes, job->size_capacity, sizeof *job->sizes);
    }
    s = &job->sizes[job->size_count++];
    memset(s, 0, sizeof *s);
    s->width = width;
    s->height = height;
    s->code = EXIT_USAGE;
    if (file) s->file = copy_text(file, strlen(file));
    job->has_files |= file != NULL;
    return s;
}
static void add_file(family_job *job, const char *path) {
    vp_error error = {VP_OK, -1, "", ""};
    char *file = NULL, line[LINE_BYTES];
    size_t bytes = 0;
    int32_t width = 0, height = 0;
    vp_result r = vp_file_read(path, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
    image_size *s;
    if (r == VP_OK) r = vp_image_size((const uint8_t *)file, bytes, &width, &height, &error);
    free(file);
    s = add_size(job, r == VP_OK ? width : 0, r == VP_OK ? height : 0, path);
    if (r == VP_OK) return;
    error_line(line, sizeof line, r, &error);
    s->error = copy_text(line, strlen(line));
    s->code = EXIT_INPUT;
}
static int add_folder(family_job *job, const char *path) {
    text_list n = {NULL, 0};
    const size_t before = job->size_count;
    names_of_folder(path, &n);
    for (size_t i = 0; i < n.count; i++) {
        char *file = join_path(path, n.items[i]);
        if (is_image_name(n.items[i]) && !is_folder(file)) add_file(job, file);
        free(file);
    }
    text_list_free(&n);
    return job->size_count > before ? 0 : complain(EXIT_INPUT, "%s: there is no image in the folder", path);
}
static int add_operand(family_job *job, const char *text) {
    int64_t width = 0, height = 0;
    if (parse_size(text, "x", &width, &height)) add_size(job, width, height, NULL);
    else if (is_folder(text)) return add_folder(job, text);
    else if (access(text, F_OK) && text[strspn(text, "0123456789xX+-.,")] == 0) {
        char line[LINE_BYTES];
        snprintf(line, sizeof line, "%s: want WIDTHxHEIGHT in pixels, like 640x480", text);
        add_size(job, 0, 0, NULL)->error = copy_text(line, strlen(line));
    } else add_file(job, text);
    return 0;
}
static int add_list(family_job *job, const char *path) {
    int from_stdin = !strcmp(path, "-");
    FILE *f = from_stdin ? stdin : fopen(path, "rb");
    char *text = NULL, line[LINE_BYTES];
    size_t capacity = 0, before = job->size_count;
    ssize_t bytes;
    if (!f) return complain(EXIT_INPUT, "--sizes %s: %s", path, strerror(errno));
    errno = 0;
    while ((bytes = getline(&text, &capacity, f)) > 0) {
        int64_t width = 0, height = 0;
        char *start = text;
        while (bytes && isspace((unsigned char)text[bytes - 1])) text[--bytes] = 0;
        start += strspn(start, " \t");
        if (!*start || *start == '#') continue;
        if (parse_size(start, "x \t,", &width, &height)) { add_size(job, width, height, NULL); continue; }
        snprintf(line, sizeof line, "not a size: %.40s", start);
        add_size(job, 0, 0, NULL)->error = copy_text(line, strlen(line));
    }
    bytes = ferror(f);
    if (!from_stdin) fclose(f);
    free(text);
    if (bytes) return complain(EXIT_INPUT, "--sizes %s: %s", path, strerror(errno));
    return job->size_count > before ? 0 : complain(EXIT_INPUT, "--sizes %s: there is no size in it", path);
}

/* ---- families */
static int unknown_family(const char *name) {
    const char *best = "";
    int least = 1000;
    for (int32_t i = 0; vp_family_at(i); i++) {
        int distance = edit_distance(name, vp_family_at(i)->name);
        if (distance < least) { least = distance; best = vp_family_at(i)->name; }
    }
    return complain(EXIT_USAGE, "--family: \"%.60s\" is not known; the nearest is %s; vlmprof tile --list_families shows all", name, best);
}
static vp_family *add_family(family_job *job) {
    job->families = resize(job->families, job->family_count + 1, sizeof *job->families);
    return &job->families[job->family_count++];
}
static int families_of_checkpoint(family_job *job, const char *folder) {
    static const char *const config_names[3] = {"preprocessor_config.json", "processor_config.json", "config.json"};
    parsed p[3];
    const vp_json *files[3] = {NULL, NULL, NULL};
    char *text[3] = {NULL, NULL, NULL};
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = VP_OK;
    int code = 0, found = 0;
    memset(p, 0, sizeof p);
    for (int i = 0; i < 3 && !code; i++) {
        char *path = join_path(folder, config_names[i]);
        size_t bytes = 0;
        if (access(path, F_OK) == 0) {
            found++;
            r = vp_file_read(path, JSON_FILE_BYTES_MAX, &text[i], &bytes, &error);
            if (r == VP_OK) r = parse_json(&p[i], text[i], bytes, &error);
            if (r == VP_OK && !node_is(&p[i].json, 0, VP_JSON_OBJECT)) r = vp_fail(&error, VP_ERR_FORMAT, -1, path, "not a JSON object");
            files[i] = &p[i].json;
            if (r != VP_OK) code = complain_result(exit_code_of(r), path, r, &error);
        }
        free(path);
    }
    if (!code && !found) code = complain(EXIT_INPUT, "%s: there is neither preprocessor_config.json nor config.json", folder);
    if (!code && (r = vp_family_from_config(add_family(job), files, &error)) != VP_OK) code = complain_result(EXIT_INPUT, folder, r, &error);
    for (int i = 0; i < 3; i++) { free(text[i]); free(p[i].nodes); }
    return code;
}
static int set_keys(family_job *job, const options *o) {
    const char *crops[2] = {"max_crops", text_of(o, "max_crops")};
    for (size_t i = 0; i < o->key_count + (given(o, "max_crops") ? 2 : 0); i += 2) {
        const char *const *key = i < o->key_count ? &o->keys[i] : crops;
        vp_error error = {VP_OK, -1, "", ""};
        size_t taken = 0;
        for (size_t k = 0; k < job->family_count; k++) {
            vp_result r = vp_family_set(&job->families[k], key[0], key[1], &error);
            if (r == VP_ERR_RANGE) return complain(EXIT_USAGE, "--%s: \"%s\": %s", key[0], key[1], error.text);
            taken += r == VP_OK;
        }
        for (size_t k = 0; k < i && k < o->key_count; k += 2)
            if (!strcmp(o->keys[k], key[0])) return complain(EXIT_USAGE, "--%s is given twice", key[0]);
        if (!taken) return complain(EXIT_USAGE, "unknown option --%s: %s; see vlmprof tile --help", key[0], error.text);
    }
    return 0;
}
static int families_of(family_job *job, const options *o) {
    static const char *const foreign[] = {"preprocess", "tier", "crops", "vision_tokens"};
    const char *wanted = job->compare ? text_of(o, "compare") : text_of(o, "family");
    int code = 0;
    if (given(o, "family") + given(o, "checkpoint") + given(o, "compare") != 1)
        return complain(EXIT_USAGE, "--family, --checkpoint and --compare exclude each other");
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (given(o, foreign[i])) return complain(EXIT_USAGE, "--%s is for Molmo's own tiling; leave it out with a family", foreign[i]);
    if (given(o, "checkpoint")) code = families_of_checkpoint(job, text_of(o, "checkpoint"));
    for (; !code && wanted; wanted = job->compare && strchr(wanted, ',') ? strchr(wanted, ',') + 1 : NULL) {
        size_t bytes = job->compare ? strcspn(wanted, ",") : strlen(wanted);
        char *name = copy_text(wanted, bytes);
        const vp_family_preset *preset = vp_family_find(name);
        if (preset) vp_family_default(preset, add_family(job)); else code = unknown_family(name);
        free(name);
    }
    return code ? code : set_keys(job, o);
}
/* a key's value in the words of the command line */
static void key_text(const vp_family *f, const vp_family_key *key, char *out, size_t capacity) {
    if (key->slot == VP_SLOT_RATIO) {
        snprintf(out, capacity, "%.15g", f->ratio);
    } else if (key->slot == VP_SLOT_SPLIT && f->preset->words) {
        const char *word = f->preset->words;
        for (int64_t i = 0; i < f->value[VP_SLOT_SPLIT]; i++) word = strchr(word, ' ') + 1;
        snprintf(out, capacity, "%.*s", (int)strcspn(word, " "), word);
    } else snprintf(out, capacity, "%lld", (long long)f->value[key->slot]);
}
static void put_keys(vp_json_writer *w, const vp_family *f, int count) {
    char text[64];
    for (int i = 0; i < count; i++) {
        const vp_family_key *key = &f->preset->keys[i];
        if (!key->name) continue;
        key_text(f, key, text, sizeof text);
        vp_json_key(w, key->name);
        if (key->slot == VP_SLOT_SPLIT && f->preset->words) vp_json_string(w, text);
        else if (key->slot == VP_SLOT_RATIO) vp_json_double(w, f->ratio);
        else vp_json_int(w, f->value[key->slot]);
    }
}

/* ---- rows */
static int is_constant(const vp_family *f) { return !strcmp(f->preset->rule, "constant"); }
static void family_head(family_job *job) {
    const vp_family *f = &job->families[0];
    if (job->json) {
        vp_json_writer_init_sink(&job->w, file_sink, stdout, 2);
        vp_json_begin_array(&job->w);
    } else if (job->csv) {
        printf("width,height%s", job->compare || is_constant(f) ? ",family" : "");
        for (int i = 0; i < f->preset->column_count && !job->compare; i++) printf(",%s", f->preset->keys[i].name);
        for (int i = 0; i < FAMILY_COLUMN_COUNT; i++) printf(",%s", FAMILY_COLUMNS[i].name);
        printf(",error%s\n", job->has_files ? ",file" : "");
    } else printf("%-13s %-22s %11s %9s %6s %9s %10s %8s %8s\n", "size", "family", "resized", "rows,cols", "views", "features", "separators",
                  "markers", "tokens");
}
static int64_t counted(const vp_vision_count *c, int i) {
    int64_t value;
    memcpy(&value, (const char *)c + FAMILY_COLUMNS[i].offset, sizeof value);
    return value;
}
static void row_json(family_job *job, const vp_family *f, const image_size *s, const vp_vision_count *c, const char *error) {
    vp_json_writer *w = &job->w;
    vp_json_begin_object(w);
    if (s->width) put_int(w, "width", s->width); else put_null(w, "width");
    if (s->width) put_int(w, "height", s->height); else put_null(w, "height");
    put_text(w, "family", f->preset->name);
    put_keys(w, f, f->preset->column_count);
    for (int i = 0; i < FAMILY_COLUMN_COUNT; i++)
        if (c && counted(c, i) >= 0) put_int(w, FAMILY_COLUMNS[i].name, counted(c, i)); else put_null(w, FAMILY_COLUMNS[i].name);
    put_text(w, "error", error);
    if (job->has_files) put_text(w, "file", s->file);
    vp_json_end_object(w);
}
static void row_csv(const family_job *job, const vp_family *f, const image_size *s, const vp_vision_count *c, const char *error) {
    char text[64];
    if (s->width || !s->error) printf("%lld,%lld", (long long)s->width, (long long)s->height); else putchar(',');
    if (job->compare || is_constant(f)) printf(",%s", f->preset->name);
    for (int i = 0; i < f->preset->column_count && !job->compare; i++) {
        key_text(f, &f->preset->keys[i], text, sizeof text);
        printf(",%s", text);
    }
    for (int i = 0; i < FAMILY_COLUMN_COUNT; i++) {
        putchar(',');
        if (c && counted(c, i) >= 0) printf("%lld", (long long)counted(c, i));
    }
    putchar(',');
    if (error) print_csv_text(error);
    if (job->has_files) putchar(',');
    if (s->file) print_csv_text(s->file);
    putchar('\n');
}
static void row_text(const vp_family *f, const image_size *s, const vp_vision_count *c, const char *error) {
    char size[48], resized[48] = "-", cells[48] = "-", views[24] = "-";
    snprintf(size, sizeof size, "%lldx%lld", (long long)s->width, (long long)s->height);
    if (!c) { printf("%-13s %-22s refused: %s\n", s->width ? size : "-", f->preset->name, error); return; }
    if (c->resized_width_px >= 0) snprintf(resized, sizeof resized, "%lldx%lld", (long long)c->resized_width_px, (long long)c->resized_height_px);
    if (c->rows >= 0) snprintf(cells, sizeof cells, "%lld,%lld", (long long)c->rows, (long long)c->cols);
    if (c->views >= 0) snprintf(views, sizeof views, "%lld", (long long)c->views);
    printf("%-13s %-22s %11s %9s %6s %9lld %10lld %8lld %8lld%s%s\n", size, f->preset->name, resized, cells, views, (long long)c->feature_tokens,
           (long long)c->separator_tokens, (long long)c->marker_tokens, (long long)c->total_tokens, s->file ? "  " : "", s->file ? s->file : "");
}
/* One image in one family. Returns 0, or the exit code it has alone when it is alone and refused. */
static int family_row(family_job *job, const vp_family *f, const image_size *s, int alone) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_vision_count c;
    char line[LINE_BYTES] = "";
    vp_result r = VP_ERR_RANGE;
    if (s->error) snprintf(line, sizeof line, "%s", s->error);
    else if (s->width < 1 || s->height < 1 || s->width > VP_FAMILY_PX_LIMIT || s->height > VP_FAMILY_PX_LIMIT)
        snprintf(line, sizeof line, "%lldx%lld: sides must be 1..%d pixels", (long long)s->width, (long long)s->height, VP_FAMILY_PX_LIMIT);
    else if ((r = vp_family_count(f, (int32_t)s->width, (int32_t)s->height, &c, &error)) != VP_OK) error_line(line, sizeof line, r, &error);
    if (r != VP_OK && alone) return complain(s->code, "%s%s%s", s->file && !strstr(line, s->file) ? s->file : "", s->file ? ": " : "", line);
    job->refused_count += r != VP_OK;
    if (!job->row_count++) family_head(job);
    if (job->json) row_json(job, f, s, r == VP_OK ? &c : NULL, r == VP_OK ? NULL : line);
    else if (job->csv) row_csv(job, f, s, r == VP_OK ? &c : NULL, r == VP_OK ? NULL : line);
    else row_text(f, s, r == VP_OK ? &c : NULL, line);
    return 0;
}
static int family_rows(family_job *job) {
    const int alone = job->size_count == 1 && job->family_count == 1;
    int code = 0;
    for (size_t i = 0; i < job->size_count && !code; i++)
        for (size_t k = 0; k < job->family_count && !code; k++) code = family_row(job, &job->families[k], &job->sizes[i], alone);
    if (job->json && job->row_count) {
        vp_json_end_array(&job->w);
        vp_json_finish(&job->w);
        putchar('\n');
    }
    if (!code && job->refused_count) code = complain(EXIT_INPUT, "%lld of %lld rows refused; see their error", (long long)job->refused_count,
                                                    (long long)job->row_count);
    return code;
}

/* ---- the other way */
static int family_invert(family_job *job, const options *o) {
    int32_t (*sizes)[2] = (int32_t (*)[2])resize(NULL, job->size_count, sizeof *sizes);
    const double share = (double)number_of(o, "percentile") / 100.0;
    const int64_t tokens = number_of(o, "max_tokens");
    char images[64] = "the image";
    int code = 0;
    if (job->size_count > 1) snprintf(images, sizeof images, "%lld %% of %zu images", (long long)number_of(o, "percentile"), job->size_count);
    for (size_t i = 0; i < job->size_count && !code; i++) {
        const image_size *s = &job->sizes[i];
        if (s->error) code = complain(s->code, "%s", s->error);
        else if (s->width < 1 || s->height < 1 || s->width > VP_FAMILY_PX_LIMIT || s->height > VP_FAMILY_PX_LIMIT)
            code = complain(EXIT_USAGE, "%lldx%lld: sides must be 1..%d pixels", (long long)s->width, (long long)s->height, VP_FAMILY_PX_LIMIT);
        sizes[i][0] = (int32_t)(code ? 0 : s->width);
        sizes[i][1] = (int32_t)(code ? 0 : s->height);
    }
    if (!code && job->json) {
        vp_json_writer_init_sink(&job->w, file_sink, stdout, 2);
        vp_json_begin_array(&job->w);
    } else if (!code && job->csv) printf("family,key,value,unlimited,max_tokens,percentile,images\n");
    for (size_t k = 0; k < job->family_count && !code; k++) {
        const vp_family *f = &job->families[k];
        const vp_family_key *knob = vp_family_knob(f);
        vp_error error = {VP_OK, -1, "", ""};
        int64_t value = 0;
        int unlimited = 0;
        vp_result r = vp_family_largest(f, (const int32_t (*)[2])sizes, job->size_count, share, tokens, &value, &unlimited, &error);
        if (r != VP_OK && !job->compare) code = complain_result(EXIT_WORK, f->preset->name, r, &error);
        if (job->json && !code) {
            vp_json_begin_object(&job->w);
            put_text(&job->w, "family", f->preset->name);
            put_text(&job->w, "key", knob ? knob->name : NULL);
            if (r == VP_OK) put_int(&job->w, "value", value); else put_null(&job->w, "value");
            put_bool(&job->w, "unlimited", r == VP_OK && unlimited);
            put_int(&job->w, "max_tokens", tokens);
            put_int(&job->w, "percentile", number_of(o, "percentile"));
            put_int(&job->w, "images", (int64_t)job->size_count);
            put_text(&job->w, "error", r == VP_OK ? NULL : error.text);
            vp_json_end_object(&job->w);
        } else if (job->csv && !code) {
            printf("%s,%s,", f->preset->name, knob ? knob->name : "");
            if (r == VP_OK) printf("%lld", (long long)value);
            printf(",%d,%lld,%lld,%zu\n", r == VP_OK && unlimited, (long long)tokens, (long long)number_of(o, "percentile"), job->size_count);
        } else if (!code && r != VP_OK) printf("%-22s %s\n", f->preset->name, error.text);
        else if (!code && unlimited) printf("%-22s --%s: no value gives %s more than %lld tokens\n", f->preset->name, knob->name, images,
            (long long)tokens);
        else if (!code) printf("%-22s --%s %lld keeps %s at %lld tokens\n", f->preset->name, knob->name, (long long)value, images, (long long)tokens);
    }
    if (job->json && !code) {
        vp_json_end_array(&job->w);
        vp_json_finish(&job->w);
        putchar('\n');
    }
    free(sizes);
    return code;
}

/* ---- drawings: the canvas with its tiles at the left, the global view at the right; both at most 900 pixels high */
typedef struct canvas { uint8_t *rgb; int32_t width, height; } canvas;
static void paint(canvas *p, int32_t x, int32_t y, const uint8_t rgb[3]) {
    if (x >= 0 && y >= 0 && x < p->width && y < p->height) memcpy(p->rgb + ((size_t)y * (size_t)p->width + (size_t)x) * 3, rgb, 3);
}
/* the image, or a checkerboard where there is none, over a rectangle: every pixel is the mean of at most 4 x 4 samples */
static void paint_image(canvas *p, const vp_image *image, int32_t left, int32_t top, int32_t width, int32_t height) {
    for (int32_t y = 0; y < height; y++) {
        for (int32_t x = 0; x < width; x++) {
            int32_t sum[3] = {0, 0, 0};
            uint8_t rgb[3];
            for (int k = 0; k < 16; k++) {
                const double u = (x + (k % 4 + 0.5) / 4) / width, v = (y + (k / 4 + 0.5) / 4) / height;
                if (image->rgb) {
                    const uint8_t *from = image->rgb + ((size_t)(v * image->height_px) * (size_t)image->width_px + (size_t)(u * image->width_px)) * 3;
                    for (int c = 0; c < 3; c++) sum[c] += from[c];
                } else for (int c = 0; c < 3; c++) sum[c] += (int)(u * image->width_px / 32) % 2 == (int)(v * image->height_px / 32) % 2 ? 200 : 150;
            }
            for (int c = 0; c < 3; c++) rgb[c] = (uint8_t)(sum[c] / 16);
            paint(p, left + x, top + y, rgb);
        }
    }
}
static void paint_frame(canvas *p, double left, double top, double right, double bottom, int thick, const uint8_t rgb[3]) {
    const int32_t x0 = (int32_t)left, y0 = (int32_t)top, x1 = (int32_t)right - 1, y1 = (int32_t)bottom - 1;
    for (int t = 0; t < thick; t++) {
        for (int32_t x = x0; x <= x1; x++) { paint(p, x, y0 + t, rgb); paint(p, x, y1 - t, rgb); }
        for (int32_t y = y0; y <= y1; y++) { paint(p, x0 + t, y, rgb); paint(p, x1 - t, y, rgb); }
    }
}
/* Where an image lies: fitted inside with its aspect kept (in the middle or at the top left), or squashed over all of it. `scale` is drawn pixels
 * a canvas pixel, 0 for the global view, which most families squash. */
static void draw_fit(const vp_family *f, const image_size *s, double width, double height, double scale, double spot[4]) {
    const char *rule = f->preset->rule, *name = f->preset->name;
    const int llama = !strcmp(name, "llama4") || !strcmp(name, "mllama"), deepseek = !strcmp(name, "deepseek_vl2");
    const int middle = !strcmp(rule, "molmo") || deepseek || (scale > 0 ? !strcmp(rule, "anyres") || !strcmp(name, "aria") : !strcmp(rule, "ocr"));
    const int corner = scale > 0 && (llama || !strcmp(rule, "padded") || !strcmp(rule, "growing"));
    double across = width / (double)s->width, down = height / (double)s->height, fit;
    if (llama && scale > 0) { /* not enlarged over a tile */
        const double tile = (double)f->value[VP_SLOT_TILE];
        const double most_w = ((double)s->width > tile ? (double)s->width : tile) * scale;
        const double most_h = ((double)s->height > tile ? (double)s->height : tile) * scale;
        across = (most_w < width ? most_w : width) / (double)s->width;
        down = (most_h < height ? most_h : height) / (double)s->height;
    }
    fit = across < down ? across : down;
    spot[2] = middle || corner ? (double)s->width * fit : width;
    spot[3] = middle || corner ? (double)s->height * fit : height;
    if (spot[2] < 1) spot[2] = 1;
    if (spot[3] < 1) spot[3] = 1;
    spot[0] = middle ? (width - spot[2]) / 2 : 0;
    spot[1] = middle ? (height - spot[3]) / 2 : 0;
}
/* Tiles in one frame each; the overlapping crops of Molmo shifted by their stride; token grids where the whole image is one view. */
static void draw_tiles(canvas *p, const vp_family *f, const vp_vision_count *c, double width, double height) {
    static const uint8_t colours[4][3] = {{230, 60, 60}, {50, 110, 230}, {40, 160, 70}, {240, 150, 20}};
    const int molmo = !strncmp(f->preset->name, "molmo", 5), second = !strcmp(f->preset->name, "molmo2");
    const double margin = molmo ? 112 : 0, stride = second ? 266 : molmo ? 224 : 0;
    int64_t rows = c->rows < 1 ? 1 : c->rows, cols = c->cols < 1 ? 1 : c->cols, merge = 1;
    int thick = 3;
    if (c->views < 0) { /* units of one token */
        if (f->value[VP_SLOT_MERGE] > 1 && c->feature_tokens < rows * cols) merge = f->value[VP_SLOT_MERGE];
        thick = 1;
        rows = (rows + merge - 1) / merge;
        cols = (cols + merge - 1) / merge;
        if (width / (double)cols < 4 || height / (double)rows < 4) rows = cols = 1; /* too fine to see */
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < cols; k++) {
            const double unit_x = molmo ? width / ((double)cols * stride + margin) : width / (double)cols;
            const double unit_y = molmo ? height / ((double)rows * stride + margin) : height / (double)rows;
            const double x = (double)k * (molmo ? stride * unit_x : unit_x), y = (double)r * (molmo ? stride * unit_y : unit_y);
            paint_frame(p, x, y, x + (molmo ? (stride + margin) * unit_x : unit_x), y + (molmo ? (stride + margin) * unit_y : unit_y), thick,
                        c->views < 0 ? colours[1] : colours[(r % 2) * 2 + k % 2]);
        }
}
/* pixels of the canvas that is cut into tiles */
static void draw_canvas(const vp_family *f, const image_size *s, const vp_vision_count *c, double *width, double *height) {
    const char *rule = f->preset->rule;
    const int molmo = !strcmp(rule, "molmo"), slices = c->rows > 1 && (!strcmp(rule, "lfm2") || !strcmp(rule, "slices"));
    const double tile = molmo ? 224 : (double)f->value[VP_SLOT_TILE], margin = molmo ? 112 : 0;
    *width = (double)(c->resized_width_px > 0 ? c->resized_width_px : s->width);
    *height = (double)(c->resized_height_px > 0 ? c->resized_height_px : s->height);
    if (!molmo && !slices && strcmp(f->preset->name, "mllama")) return; /* else the resized image is not the canvas */
    *width = (double)c->cols * tile + margin;
    *height = (double)c->rows * tile + margin;
}
static int draw_family(const vp_family *f, const image_size *s, const vp_image *image, const char *path) {
    static const uint8_t green[3] = {20, 120, 60};
    vp_error error = {VP_OK, -1, "", ""};
    vp_vision_count c;
    canvas p = {NULL, 0, 0};
    double width, height, scale, spot[4];
    int32_t w, h, side = 0, code = 0;
    vp_result r = vp_family_count(f, (int32_t)s->width, (int32_t)s->height, &c, &error);
    if (r != VP_OK) return complain_result(EXIT_USAGE, f->preset->name, r, &error);
    draw_canvas(f, s, &c, &width, &height);
    scale = 900 / (width > height ? width : height);
    if (scale > 1) scale = 1;
    w = (int32_t)(width * scale) > 1 ? (int32_t)(width * scale) : 1;
    h = (int32_t)(height * scale) > 1 ? (int32_t)(height * scale) : 1;
    if (c.views > c.rows * c.cols && c.rows * c.cols > 0) side = 224;
    p.width = w + (side ? side + 24 : 0);
    p.height = h > side ? h : side;
    p.rgb = resize(NULL, (size_t)p.width * (size_t)p.height, 3);
    memset(p.rgb, 235, (size_t)p.width * (size_t)p.height * 3);
    for (int32_t y = 0; y < h; y++) memset(p.rgb + (size_t)y * (size_t)p.width * 3, 0, (size_t)w * 3); /* what is padded stays black */
    draw_fit(f, s, w, h, scale, spot);
    paint_image(&p, image, (int32_t)spot[0], (int32_t)spot[1], (int32_t)spot[2], (int32_t)spot[3]);
    draw_tiles(&p, f, &c, w, h);
    if (side) {
        if (!strcmp(f->preset->rule, "padded") || !strcmp(f->preset->rule, "growing")) { /* the whole canvas, squashed */
            spot[2] *= (double)side / w;
            spot[3] *= (double)side / h;
        } else draw_fit(f, s, side, side, 0, spot);
        for (int32_t y = 0; y < side; y++) memset(p.rgb + ((size_t)y * (size_t)p.width + (size_t)w + 24) * 3, 0, (size_t)side * 3);
        paint_image(&p, image, w + 24 + (int32_t)spot[0], (int32_t)spot[1], (int32_t)spot[2], (int32_t)spot[3]);
        paint_frame(&p, w + 24, 0, w + 24 + side, side, 3, green);
    }
    errno = 0;
    if (!stbi_write_png(path, p.width, p.height, 3, p.rgb, p.width * 3))
        code = complain(EXIT_OUTPUT, "--draw %s: cannot be written: %s", path, strerror(errno ? errno : EIO));
    free(p.rgb);
    return code;
}
static int family_draw(family_job *job, const options *o) {
    vp_image image = {0, 0, NULL};
    char reason[LINE_BYTES];
    int code = 0;
    if (job->size_count != 1 || job->family_count != 1) return complain(EXIT_USAGE, "--draw needs one family and one image or size");
    if (job->sizes->error) return complain(job->sizes->code, "%s", job->sizes->error);
    if (job->sizes->width < 1 || job->sizes->height < 1 || job->sizes->width > VP_FAMILY_PX_LIMIT || job->sizes->height > VP_FAMILY_PX_LIMIT)
        return complain(EXIT_USAGE, "sides must be 1..%d pixels", VP_FAMILY_PX_LIMIT);
    image.width_px = (int32_t)job->sizes->width;
    image.height_px = (int32_t)job->sizes->height;
    if (job->sizes->file && (code = load_image(job->sizes->file, &image, reason, sizeof reason)) != 0) return complain(code, "%s", reason);
    code = draw_family(&job->families[0], &job->sizes[0], &image, text_of(o, "draw"));
    if (image.rgb) vp_image_free(&image);
    return code;
}

/* ---- the list */
static void list_families(int json) {
    static vp_family f;
    char text[64];
    vp_json_writer w;
    if (json) {
        vp_json_writer_init_sink(&w, file_sink, stdout, 2);
        vp_json_begin_array(&w);
    } else printf("%-27s %-15s %-10s keys and their published values\n", "family", "rule", "certainty");
    for (int32_t i = 0; vp_family_at(i); i++) {
        const vp_family_preset *p = vp_family_at(i);
        vp_family_default(p, &f);
        if (json) {
            vp_json_begin_object(&w);
            put_text(&w, "family", p->name);
            put_text(&w, "aliases", p->aliases);
            put_text(&w, "rule", p->rule);
            put_text(&w, "certainty", vp_certainty_text(p->certainty));
            vp_json_key(&w, "keys");
            vp_json_begin_object(&w);
            put_keys(&w, &f, VP_FAMILY_KEYS_LIMIT);
            vp_json_end_object(&w);
            vp_json_end_object(&w);
            continue;
        }
        printf("%-27s %-15s %-10s", p->name, p->rule, vp_certainty_text(p->certainty));
        for (int k = 0; k < VP_FAMILY_KEYS_LIMIT; k++) {
            if (!p->keys[k].name) continue;
            key_text(&f, &p->keys[k], text, sizeof text);
            printf(" %s=%s", p->keys[k].name, text);
        }
        putchar('\n');
    }
    if (!json) return;
    vp_json_end_array(&w);
    vp_json_finish(&w);
    putchar('\n');
}

int tile_families_run(const options *o) {
    family_job job;
    int code = 0;
    memset(&job, 0, sizeof job);
    job.csv = given(o, "csv");
    job.json = given(o, "json");
    job.compare = given(o, "compare");
    if (job.csv && job.json) return complain(EXIT_USAGE, "--csv and --json exclude each other");
    if (given(o, "list_families")) {
        list_families(job.json);
        return 0;
    }
    code = families_of(&job, o);
    if (!code && !text_of(o, "sizes") && !o->operand_count)
        code = complain(EXIT_USAGE, "tile needs sizes (640x480), image files, folders, or --sizes LIST");
    for (size_t i = 0; i < o->operand_count && !code; i++) code = add_operand(&job, o->operands[i]);
    if (!code && text_of(o, "sizes")) code = add_list(&job, text_of(o, "sizes"));
    if (!code && given(o, "draw")) code = family_draw(&job, o);
    if (!code && given(o, "max_tokens")) code = family_invert(&job, o);
    else if (!code) code = family_rows(&job);
    for (size_t i = 0; i < job.size_count; i++) { free(job.sizes[i].file); free(job.sizes[i].error); }
    free(job.sizes);
    free(job.families);
    return code;
}
