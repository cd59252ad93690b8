/* Vision tokens of the images in a folder, for a MolmoE model under adaptive tiling and the three tiers, and for
 * Qwen3-VL. It needs three headers, no model and no GPU. Of each file only the beginning is read, where its width and
 * height are.
 * cc -I. -Iparts samples/03_tokens_of_folder.c -lm -o tokens_of_folder && ./tokens_of_folder samples */
#define _POSIX_C_SOURCE 200809L
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_families.h"
#include "vlmprof_image.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEAD_BYTES = 1 << 20, WAYS = 4, COLUMNS = WAYS + 1 }; /* adaptive, low, medium, high; Qwen3-VL */

static int is_image(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && (!strcasecmp(dot, ".png") || !strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg"));
}
static int compare_names(const void *one, const void *other) {
    return strcmp(*(char *const *)one, *(char *const *)other);
}
/* The images of a folder, sorted by name. Returns their count; -1 with errno set. */
static int list_images(const char *folder, char ***names) {
    DIR *listing = opendir(folder);
    const struct dirent *entry;
    int count = 0;
    if (!listing) return -1;
    while ((entry = readdir(listing)) != NULL) {
        char **grown;
        if (!is_image(entry->d_name)) continue;
        grown = (char **)realloc(*names, ((size_t)count + 1) * sizeof *grown);
        if (!grown) break;
        *names = grown;
        grown[count] = (char *)malloc(strlen(entry->d_name) + 1);
        if (!grown[count]) break;
        strcpy(grown[count++], entry->d_name);
    }
    closedir(listing);
    if (entry) return -1; /* no memory */
    if (count) qsort(*names, (size_t)count, sizeof **names, compare_names);
    return count;
}

/* The layouts of one image file; error says what is wrong with it. */
static vp_result measure(const char *folder, const char *name, vp_layout layouts[WAYS], vp_error *error) {
    static uint8_t head[HEAD_BYTES];
    vp_geometry geometry = vp_geometry_default();
    char path[4096];
    int32_t width_px, height_px;
    size_t bytes;
    FILE *file;
    vp_result result;
    int way;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    bytes = file ? fread(head, 1, sizeof head, file) : 0;
    result = file && !ferror(file) ? vp_image_size(head, bytes, &width_px, &height_px, error)
        : vp_error_set(error, VP_ERR_READ, -1, NULL, strerror(errno));
    if (file) fclose(file);
    for (way = 0; way < WAYS && result == VP_OK; way++) {
        vp_tile_options options = vp_tile_options_default(); /* adaptive: fit and pad, at most 12 crops */
        if (way) {
            options.rule = VP_TILE_TIER;
            options.fit = VP_FIT_FILL;
            options.tier = vp_tier_at(way - 1);
        }
        result = vp_layout_compute(&geometry, &options, width_px, height_px, &layouts[way], error);
    }
    return result;
}

/* One figure of each column of tokens, as a row below the table. */
static void print_row(const char *name, const double values[COLUMNS]) {
    printf("%-26s %-28s %9.1f %9.1f %9.1f %9.1f %9.1f\n", name, "", values[0], values[1], values[2], values[3],
           values[4]);
}

int main(int argc, char **argv) {
    char **names = NULL;
    double *tokens[COLUMNS], *scratch, sum[COLUMNS], mean[COLUMNS], p50[COLUMNS], p95[COLUMNS];
    int count = argc == 2 ? list_images(argv[1], &names) : 0, refused = 0, i, way;
    size_t used = 0;
    if (argc != 2) { fprintf(stderr, "usage: %s FOLDER\n", argv[0]); return 2; }
    if (count < 1) {
        fprintf(stderr, "%s: %s\n", argv[1], count < 0 ? strerror(errno) : "no .png, .jpg or .jpeg file in it");
        return 1;
    }
    scratch = (double *)malloc((COLUMNS + 1) * (size_t)count * sizeof *scratch);
    if (!scratch) return 1;
    for (way = 0; way < COLUMNS; way++) tokens[way] = scratch + (size_t)(way + 1) * (size_t)count;

    printf("%-26s %-12s %-8s %6s %9s %9s %9s %9s %9s\n",
           "image", "size", "tiling", "crops", "adaptive", "low", "medium", "high", "qwen3-vl");
    for (i = 0; i < count; i++) {
        vp_layout layouts[WAYS];
        vp_error error = {VP_OK, -1, "", ""};
        char size[32], tiling[32];
        if (measure(argv[1], names[i], layouts, &error) == VP_OK) {
            for (way = 0; way < WAYS; way++) tokens[way][used] = layouts[way].feature_tokens;
            tokens[WAYS][used] = (double)vp_count_tokens("qwen3-vl", layouts[0].width_px, layouts[0].height_px);
            snprintf(size, sizeof size, "%dx%d", (int)layouts[0].width_px, (int)layouts[0].height_px);
            snprintf(tiling, sizeof tiling, "%dx%d", (int)layouts[0].tiling.rows, (int)layouts[0].tiling.cols);
            printf("%-26s %-12s %-8s %6d %9d %9d %9d %9d %9.0f\n", names[i], size, tiling,
                   (int)layouts[0].crops, (int)layouts[0].feature_tokens, (int)layouts[1].feature_tokens,
                   (int)layouts[2].feature_tokens, (int)layouts[3].feature_tokens, tokens[WAYS][used]);
            used++;
        } else {
            refused++;
            fprintf(stderr, "%s: %s\n", names[i], error.text[0] ? error.text : vp_result_text(error.code));
        }
        free(names[i]);
    }
    free(names);
    for (way = 0; way < COLUMNS && used; way++) {
        vp_statistics s;
        if (vp_statistics_compute(tokens[way], used, scratch, &s) != VP_OK) return 1;
        sum[way] = vp_statistics_sum(tokens[way], used), mean[way] = s.mean, p50[way] = s.p50, p95[way] = s.p95;
    }
    if (used) { print_row("total", sum); print_row("mean", mean); print_row("P50", p50); print_row("P95", p95); }
    free(scratch);
    return refused != 0;
}
