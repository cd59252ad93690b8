/* family.c: model families on the command line. */
#include "tile/family.h"

#include "base/console.h"
#include "base/memory.h"
#include "base/options.h"

#include <ctype.h>

/* The letters and digits of the first word of a text, in lower case. */
static void bare_word(char out[64], const char *text) {
    size_t bytes = 0;
    for (; *text && *text != ' ' && bytes < 63; text++)
        if (isalnum((unsigned char)*text)) out[bytes++] = (char)tolower((unsigned char)*text);
    out[bytes] = 0;
}
static int is_near_one(const char *name, const char *words) {
    struct text_buffer near = {NULL, 0, 0};
    char typed[64], word[64];
    bare_word(typed, name);
    for (; *words && !near.bytes; words += strcspn(words, " "), words += *words == ' ') {
        bare_word(word, words);
        add_near_word(&near, typed, "", word);
    }
    int is_near = near.bytes > 0;
    free(near.data);
    return is_near;
}
/* Complains about an unknown family and suggests those with a similar name or alias. Returns an exit code. */
static int unknown_family(const char *option, const char *name) {
    struct text_buffer near = {NULL, 0, 0};
    const vp_family_preset *preset;
    for (int32_t i = 0; (preset = vp_family_at(i)) != NULL; i++)
        if (is_near_one(name, preset->name) || is_near_one(name, preset->aliases))
            text_add_format(&near, "%s%s", near.bytes ? ", " : "; did you mean ", preset->name);
    int code = complain(EXIT_USAGE, "--%s: unknown family \"%.60s\"%.500s%s vlmprof tile --list_families lists all",
                        option, name, near.bytes ? near.data : "", near.bytes ? "?" : ";");
    free(near.data);
    return code;
}
int family_by_name(const char *option, const char *name, vp_family *family) {
    const vp_family_preset *preset = vp_family_find(name);
    if (!preset) return unknown_family(option, name);
    vp_family_default(preset, family);
    return 0;
}
int family_set_keys(struct family_keys keys, vp_family *families, size_t family_count) {
    const char *const crops[2] = {"max_crops", keys.max_crops};
    for (size_t i = 0; i < keys.count + (keys.max_crops ? 2 : 0); i += 2) {
        const char *const *key = i < keys.count ? &keys.items[i] : crops;
        vp_error error = {VP_OK, -1, "", ""};
        size_t taken = 0;
        for (size_t k = 0; k < family_count; k++) {
            vp_result result = vp_family_set(&families[k], key[0], key[1], &error);
            if (result == VP_ERR_RANGE) return complain(EXIT_USAGE, "--%s: \"%s\": %s", key[0], key[1], error.text);
            taken += result == VP_OK;
        }
        for (size_t k = 0; k < i && k < keys.count; k += 2)
            if (!strcmp(keys.items[k], key[0])) return complain(EXIT_USAGE, "--%s is given twice", key[0]);
        if (!taken)
            return complain(EXIT_USAGE, "unknown option --%s: %s; see vlmprof %s --help", key[0], error.text,
                            keys.command);
    }
    return 0;
}

enum { LONG_SIDE_MAX = 4096 }; /* limit for enlarged images; larger ones are only made smaller */

/* Token count of an image whose longer side is scaled to `side`; -1 if the rule rejects the size. */
static int64_t tokens_of_side(const vp_family *family, int32_t width_px, int32_t height_px, int32_t side,
                              int32_t sent[2]) {
    const int32_t longer = width_px > height_px ? width_px : height_px;
    const int32_t sides[2] = {width_px, height_px};
    vp_vision_count count;
    for (int i = 0; i < 2; i++) {
        sent[i] = (int32_t)(((int64_t)sides[i] * side * 2 + longer) / ((int64_t)longer * 2)); /* the nearest size */
        if (sent[i] < 1) sent[i] = 1;
    }
    return vp_family_count(family, sent[0], sent[1], &count, NULL) == VP_OK ? count.total_tokens : -1;
}
int family_size_for(const vp_family *family, int32_t width_px, int32_t height_px, int64_t max_tokens,
                    int32_t *sent_width_px, int32_t *sent_height_px, char *reason, size_t capacity) {
    const int32_t own = width_px > height_px ? width_px : height_px, most = own > LONG_SIDE_MAX ? own : LONG_SIDE_MAX;
    int64_t best = -1, least = -1;
    int32_t best_side = 0, sent[2];
    /* tokens may not grow with the side (tiles depend on the shape), so every side is tried */
    for (int32_t side = 1; side <= most; side++) {
        const int64_t tokens = tokens_of_side(family, width_px, height_px, side, sent);
        if (tokens < 0) continue;
        if (least < 0 || tokens < least) least = tokens;
        if (tokens > max_tokens || tokens < best) continue;
        if (tokens == best && abs(side - own) >= abs(best_side - own)) continue;
        best = tokens;
        best_side = side;
    }
    if (best < 0) {
        snprintf(reason, capacity,
                 "no size of this shape costs at most %lld tokens by %s's rule: the minimum is %lld",
                 (long long)max_tokens, family->preset->name, (long long)least);
        return EXIT_INPUT;
    }
    tokens_of_side(family, width_px, height_px, best_side, sent);
    *sent_width_px = best_side == own ? 0 : sent[0];
    *sent_height_px = best_side == own ? 0 : sent[1];
    return 0;
}
