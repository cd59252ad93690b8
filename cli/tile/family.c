/* family.c: a model family of the command line. */
#include "tile/family.h"

#include "base/console.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Complains about an unknown family, with those of a similar name or the same beginning. Returns an exit code. */
static int unknown_family(const char *name) {
    struct text_buffer near = {NULL, 0, 0};
    int code;
    for (int32_t i = 0; vp_family_at(i); i++) add_near_word(&near, name, "", vp_family_at(i)->name);
    code = complain(EXIT_USAGE, "--family: \"%.60s\" is not known%.500s%s vlmprof tile --list_families shows all", name,
                    near.bytes ? near.data : "", near.bytes ? "?" : ";");
    free(near.data);
    return code;
}
int family_by_name(const char *name, vp_family *family) {
    const vp_family_preset *preset = vp_family_find(name);
    if (!preset) return unknown_family(name);
    vp_family_default(preset, family);
    return 0;
}
int family_set_keys(const struct options *options, vp_family *families, size_t family_count) {
    const char *crops[2] = {"max_crops", has_option(options, "max_crops") ? text_of(options, "max_crops") : NULL};
    const int has_crops = has_option(options, "max_crops") && is_given(options, "max_crops");
    for (size_t i = 0; i < options->key_count + (has_crops ? 2 : 0); i += 2) {
        const char *const *key = i < options->key_count ? &options->keys[i] : crops;
        vp_error error = {VP_OK, -1, "", ""};
        size_t taken = 0;
        for (size_t k = 0; k < family_count; k++) {
            vp_result result = vp_family_set(&families[k], key[0], key[1], &error);
            if (result == VP_ERR_RANGE) return complain(EXIT_USAGE, "--%s: \"%s\": %s", key[0], key[1], error.text);
            taken += result == VP_OK;
        }
        for (size_t k = 0; k < i && k < options->key_count; k += 2)
            if (!strcmp(options->keys[k], key[0])) return complain(EXIT_USAGE, "--%s is given twice", key[0]);
        if (!taken)
            return complain(EXIT_USAGE, "unknown option --%s: %s; see vlmprof %s --help", key[0], error.text,
                            options->command->name);
    }
    return 0;
}
