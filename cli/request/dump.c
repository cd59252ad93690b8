/* dump.c: what a request held on the way, as NumPy files. */
#include "request/dump.h"

#include "base/console.h"
#include "base/files.h"
#include "base/memory.h"
#include "vlmprof.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes DIR/NAME.npy (version 1.0, little-endian as the machine is, C order); returns 0 or an exit code. */
static int write_npy(const char *folder, const char *name, const char *type, int dimensions, const int64_t *shape, const void *data,
                     size_t element_bytes) {
    char file[64], header[256], *path;
    size_t count = 1, used, padded;
    FILE *f;
    int bad;
    snprintf(file, sizeof file, "%s.npy", name);
    used = (size_t)snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int i = 0; i < dimensions; i++) {
        count *= (size_t)shape[i];
        used += (size_t)snprintf(header + used, sizeof header - used, "%lld%s", (long long)shape[i],
                                 dimensions == 1 ? "," : i + 1 < dimensions ? ", " : "");
    }
    used += (size_t)snprintf(header + used, sizeof header - used, "), }");
    padded = (10 + used + 1 + 63) / 64 * 64; /* data start at a multiple of 64; the header ends with a line feed */
    path = join_path(folder, file);
    f = fopen(path, "wb");
    bad = !f;
    if (f) {
        fprintf(f, "\x93NUMPY%c%c%c%c%s%*s\n", 1, 0, (int)((padded - 10) & 255), (int)((padded - 10) >> 8), header, (int)(padded - 11 - used), "");
        bad = count && fwrite(data, element_bytes, count, f) != count;
        bad |= ferror(f) != 0;
        bad |= fclose(f) != 0;
    }
    if (bad) complain(EXIT_OUTPUT, "%s cannot be written: %s", path, strerror(errno));
    free(path);
    return bad ? EXIT_OUTPUT : 0;
}
static int64_t *widen(const int32_t *values, size_t count) {
    int64_t *out = resize(NULL, count, sizeof *out);
    for (size_t i = 0; i < count; i++) out[i] = values[i];
    return out;
}

void dump_reserve(vp_dump *d, const model *m, const work *k) {
    size_t rows = k->layout ? (size_t)k->layout->views * (size_t)vp_geometry_tokens_per_crop(&m->config.geometry) : 0;
    memset(d, 0, sizeof *d);
    if (rows) d->image_features = zeroed(rows * (size_t)m->config.d_model, sizeof(float));
    d->block_last = zeroed((size_t)k->block_count * (size_t)m->config.d_model, sizeof(float));
    d->logits = zeroed((size_t)k->new_tokens * (size_t)m->config.embedding_size, sizeof(float));
}

int dump_write(const char *folder, const session *s, const work *k, const timing *t, const vp_dump *d) {
    const vp_geometry *g = &s->m->config.geometry;
    int64_t views = k->layout ? k->layout->views : 0, per_crop = vp_geometry_tokens_per_crop(g), side = vp_geometry_patches_per_side(g);
    int64_t sequence[1] = {sequence_of(k)}, steps[1] = {t->token_count}, index[2] = {views, per_crop}, masks[2] = {views, side * side};
    int64_t pixels[3] = {views, side * side, (int64_t)g->patch_px * g->patch_px * 3}, features[3] = {views, per_crop, s->m->config.d_model};
    int64_t last[2] = {k->block_count, s->m->config.d_model}, logits[2] = {t->token_count, s->m->config.embedding_size};
    int64_t *ids = widen((const int32_t *)s->ids.data, (size_t)sequence[0]), *tokens = widen(t->tokens, (size_t)steps[0]);
    int code = write_npy(folder, "input_ids", "<i8", 1, sequence, ids, sizeof *ids);
    if (!code) code = write_npy(folder, "image_input_idx", "<i4", 2, index, s->index.data, sizeof(int32_t));
    if (!code) code = write_npy(folder, "image_masks", "<f4", 2, masks, s->masks.data, sizeof(float));
    if (!code) code = write_npy(folder, "pixels", "<f4", 3, pixels, s->pixels.data, sizeof(float));
    if (!code) code = write_npy(folder, "image_features", "<f4", 3, features, d->image_features, sizeof(float));
    if (!code) code = write_npy(folder, "block_last", "<f4", 2, last, d->block_last, sizeof(float));
    if (!code) code = write_npy(folder, "logits", "<f4", 2, logits, d->logits, sizeof(float));
    if (!code) code = write_npy(folder, "tokens", "<i8", 1, steps, tokens, sizeof *tokens);
    free(ids);
    free(tokens);
    return code;
}
