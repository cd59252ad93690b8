/* prune_setting.c: reads --prune METHOD[:KEY=VALUE,..] for the engine, and describes its effect. */
#include "measure/engine.h"

#include "base/console.h"
#include "base/options.h"

#include <math.h>

/* ---- the grammar: one row per key */
enum value_kind { KEEP, WHOLE, SEED, LAYERS, RATIOS, POSITIONS };
#define OF(method) (1u << VP_PRUNE_##method)
struct prune_key {
    const char *name;
    unsigned methods; /* bits of the methods that have it */
    enum value_kind kind;
    size_t offset; /* offset of the number in vp_prune */
    int64_t least, most;
};
static const struct prune_key KEYS[] = {
    {"keep", OF(RANDOM) | OF(STRIDE) | OF(VISIONZIP) | OF(DIVPRUNE) | OF(FASTV) | OF(DART), KEEP,
     offsetof(vp_prune, keep), 2, INT32_MAX},
    {"layer", OF(RANDOM) | OF(STRIDE), WHOLE, offsetof(vp_prune, layer), 0, 100000},
    {"layer", OF(FASTV) | OF(DART), WHOLE, offsetof(vp_prune, layer), 1, 100000},
    {"seed", OF(RANDOM), SEED, offsetof(vp_prune, seed), 0, UINT32_MAX},
    {"dominant", OF(VISIONZIP), WHOLE, offsetof(vp_prune, dominant), 1, INT32_MAX},
    {"contextual", OF(VISIONZIP), WHOLE, offsetof(vp_prune, contextual), 0, INT32_MAX},
    {"pivot_image", OF(DART), WHOLE, offsetof(vp_prune, pivot_image), 1, VP_PRUNE_PIVOTS_MAX},
    {"pivot_text", OF(DART), WHOLE, offsetof(vp_prune, pivot_text), 0, VP_PRUNE_PIVOTS_MAX - 1},
    {"per_pivot", OF(DART), WHOLE, offsetof(vp_prune, per_pivot), 1, INT32_MAX},
    {"layers", OF(PDROP), LAYERS, offsetof(vp_prune, layers), 0, 100000},
    {"ratios", OF(PDROP), RATIOS, offsetof(vp_prune, ratios), 0, 0},
    {"positions", ~0u, POSITIONS, 0, 0, 0},
};
enum { KEY_COUNT = sizeof KEYS / sizeof *KEYS, PART_BYTES = 64 };

static int method_of(const char *name) {
    for (int method = 0; method < VP_PRUNE_METHOD_COUNT; method++)
        if (!strcmp(name, vp_prune_name((vp_prune_method)method))) return method;
    return -1;
}
static int takes(const struct prune_key *key, vp_prune_method method) {
    return method != VP_PRUNE_NONE && (key->methods >> method & 1);
}
/* Writes why a word is not a method (method -1), or not a key of a method. */
static void unknown_word(const char *kind, const char *word, int method, char *reason, size_t capacity) {
    struct text_buffer words = {NULL, 0, 0}, line = {NULL, 0, 0};
    for (int i = 0; i < (method < 0 ? (int)VP_PRUNE_METHOD_COUNT : (int)KEY_COUNT); i++) {
        if (method >= 0 && !takes(&KEYS[i], (vp_prune_method)method)) continue;
        text_add_string(&words, words.bytes ? " " : "");
        text_add_string(&words, method < 0 ? vp_prune_name((vp_prune_method)i) : KEYS[i].name);
    }
    add_unknown_word(&line, kind, word, words.data);
    snprintf(reason, capacity, "%s", line.data);
    FREE_ALL(words.data, line.data);
}
static int fail(char *reason, size_t capacity, const char *key, const char *value, const char *wanted) {
    snprintf(reason, capacity, "%s=%.60s: expected %s", key, value, wanted);
    return 0;
}
static int is_number(const char *text, double *number) {
    char *end = NULL;
    if (!((text[0] >= '0' && text[0] <= '9') || text[0] == '.' || text[0] == '-')) return 0; /* no nan, inf, space */
    *number = strtod(text, &end);
    return end != text && !*end && isfinite(*number);
}
static int is_whole(const char *text, int64_t least, int64_t most, int64_t *number) {
    double value;
    if (!is_number(text, &value) || strpbrk(text, ".eExXpP") || !(value >= (double)least && value <= (double)most))
        return 0;
    *number = (int64_t)value;
    return 1;
}
static int read_keep(const char *text, double *keep) {
    int64_t tokens;
    if (is_whole(text, 2, INT32_MAX, &tokens)) {
        *keep = (double)tokens;
        return 1;
    }
    return is_number(text, keep) && *keep > 0 && *keep < 1;
}
/* Reads numbers separated by slashes. Returns their number; 0 if one is invalid or there are too many. */
static int read_list(const struct prune_key *key, const char *text, vp_prune *prune) {
    int count = 0;
    while (count < VP_PRUNE_CUTS_MAX) {
        char part[PART_BYTES];
        const size_t bytes = strcspn(text, "/");
        int64_t layer = 0;
        double ratio = 0;
        if (!bytes || bytes >= sizeof part) return 0;
        memcpy(part, text, bytes);
        part[bytes] = 0;
        if (key->kind == LAYERS ? !is_whole(part, key->least, key->most, &layer)
                                : !(is_number(part, &ratio) && ratio > 0 && ratio < 1))
            return 0;
        if (key->kind == LAYERS) prune->layers[count++] = (int32_t)layer;
        else prune->ratios[count++] = ratio;
        if (!text[bytes]) return count;
        text += bytes + 1;
    }
    return 0;
}
/* The numbers of layers and of ratios (0: not given), and whether contextual was given, because 0
 * is a valid value of it. */
struct given_counts { int layers, ratios, has_contextual; };
static int read_value(const struct prune_key *key, const char *text, struct prune_setting *out,
                      struct given_counts *counts, char *reason, size_t capacity) {
    char *place = (char *)&out->how + key->offset, wanted[96];
    int64_t whole = 0;
    switch (key->kind) {
    case KEEP:
        if (read_keep(text, &out->how.keep)) return 1;
        return fail(reason, capacity, key->name, text,
                    "2 or more tokens, or a share of the image's tokens between 0 and 1");
    case LAYERS:
    case RATIOS:
        *(key->kind == LAYERS ? &counts->layers : &counts->ratios) = read_list(key, text, &out->how);
        if (key->kind == LAYERS ? counts->layers : counts->ratios) return 1;
        return fail(reason, capacity, key->name, text,
                    key->kind == LAYERS ? "1 to 8 block numbers separated by slashes, such as 8/16/24"
                                        : "1 to 8 shares between 0 and 1 separated by slashes, such as 0.5/0.25");
    case POSITIONS:
        out->how.positions = !strcmp(text, "keep")      ? VP_PRUNE_KEEP
                             : !strcmp(text, "compact") ? VP_PRUNE_COMPACT
                                                        : VP_PRUNE_PUBLISHED;
        if (out->how.positions != VP_PRUNE_PUBLISHED || !strcmp(text, "published")) return 1;
        return fail(reason, capacity, key->name, text, "published, keep or compact");
    default: break;
    }
    if (!is_whole(text, key->least, key->most, &whole)) {
        snprintf(wanted, sizeof wanted, "an integer from %lld to %lld", (long long)key->least, (long long)key->most);
        return fail(reason, capacity, key->name, text, wanted);
    }
    if (key->kind == SEED) out->has_seed = 1, out->how.seed = (uint32_t)whole;
    else *(int32_t *)(void *)place = (int32_t)whole;
    if (key->offset == offsetof(vp_prune, contextual)) counts->has_contextual = 1;
    return 1;
}
/* Reads one KEY=VALUE. given: bits of the rows of keys that were already given. */
static int read_pair(char *pair, struct prune_setting *out, uint32_t *given, struct given_counts *counts, char *reason,
                     size_t capacity) {
    char *equals = strchr(pair, '=');
    const vp_prune_method method = out->how.method;
    if (equals) *equals = 0;
    for (int i = 0; i < KEY_COUNT && equals; i++) {
        if (strcmp(KEYS[i].name, pair) != 0 || !takes(&KEYS[i], method)) continue;
        if (*given >> i & 1) {
            snprintf(reason, capacity, "%s: %s is given twice", vp_prune_name(method), pair);
            return 0;
        }
        *given |= 1u << i;
        return read_value(&KEYS[i], equals + 1, out, counts, reason, capacity);
    }
    if (method == VP_PRUNE_NONE) snprintf(reason, capacity, "none takes no keys, but got \"%.60s\"", pair);
    else if (!equals) snprintf(reason, capacity, "%s: expected KEY=VALUE, got \"%.60s\"", vp_prune_name(method), pair);
    else {
        char kind[40];
        snprintf(kind, sizeof kind, "key of %s", vp_prune_name(method));
        unknown_word(kind, pair, (int)method, reason, capacity);
    }
    return 0;
}
/* Completes a setting with the method's defaults, the published ones. Returns 0 with a reason on a conflict. */
static int complete(struct prune_setting *out, const struct given_counts *counts, char *reason, size_t capacity) {
    vp_prune *prune = &out->how;
    const char *why = NULL;
    if (prune->keep > 0 && (prune->dominant || counts->has_contextual || prune->per_pivot))
        why = "keep and the method's own counts cannot be used together";
    else if (prune->method == VP_PRUNE_VISIONZIP && !(prune->keep > 0)) {
        if (!prune->dominant && counts->has_contextual) why = "contextual needs dominant";
        else if (!prune->dominant) prune->dominant = 54, prune->contextual = 10;
    } else if (prune->method == VP_PRUNE_DIVPRUNE && !(prune->keep > 0)) prune->keep = 0.098;
    else if (prune->method == VP_PRUNE_FASTV && !(prune->keep > 0)) prune->keep = 0.5;
    else if (prune->method == VP_PRUNE_DART && !(prune->keep > 0) && !prune->per_pivot) prune->keep = 0.222;
    else if ((prune->method == VP_PRUNE_RANDOM || prune->method == VP_PRUNE_STRIDE) && !(prune->keep > 0))
        why = "keep is missing; expected a number of tokens, or a share between 0 and 1";
    else if (prune->method == VP_PRUNE_PDROP && counts->layers != counts->ratios)
        why = "layers and ratios must have the same length";
    else if (prune->method == VP_PRUNE_PDROP && !counts->layers) {
        for (int i = 0; i < 3; i++) prune->layers[i] = 8 * (i + 1), prune->ratios[i] = 1.0 / (double)(2 << i);
        prune->cut_count = 3;
    } else if (prune->method == VP_PRUNE_PDROP) prune->cut_count = counts->layers;
    for (int i = 1; i < prune->cut_count && !why; i++)
        if (prune->layers[i] <= prune->layers[i - 1] || !(prune->ratios[i] < prune->ratios[i - 1]))
            why = "layers must be ascending and ratios descending";
    if (why) snprintf(reason, capacity, "%s: %s", vp_prune_name(prune->method), why);
    return why == NULL;
}
int prune_read(const char *text, struct prune_setting *out, char *reason, size_t capacity) {
    char *copy = copy_text(text, strlen(text)), *at = strchr(copy, ':');
    struct given_counts counts = {0, 0, 0};
    uint32_t given = 0;
    int good = 1, method;
    if (at) *at++ = 0;
    method = method_of(copy);
    memset(out, 0, sizeof *out);
    if (method >= 0) out->how = vp_prune_default((vp_prune_method)method);
    else if (!strcmp(copy, "cdpruner")) {
        snprintf(reason, capacity,
                 "cdpruner: it needs CLIP's text tower, which no model here has; divprune also keeps the most diverse "
                 "tokens, but ignores the text");
        good = 0;
    } else {
        unknown_word("method", copy, -1, reason, capacity);
        good = 0;
    }
    if (good && at && !*at) {
        snprintf(reason, capacity, "\"%.60s\": keys are missing after the colon", text);
        good = 0;
    }
    while (good && at) {
        char *comma = strchr(at, ',');
        if (comma) *comma++ = 0;
        good = read_pair(at, out, &given, &counts, reason, capacity);
        at = comma;
    }
    free(copy);
    return good && complete(out, &counts, reason, capacity);
}
int prune_check(const char *option, const char *const *texts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct prune_setting setting;
        char reason[LINE_BYTES];
        if (!prune_read(texts[i], &setting, reason, sizeof reason))
            return complain(EXIT_USAGE, "--%s: %s", option, reason);
    }
    return 0;
}

/* ---- the effect in the engine */
int prune_forecast(const struct prune_setting *setting, const struct prune_counts *counts, vp_pruned *pruned,
                   char *reason, size_t capacity) {
    vp_prune prune = setting->how;
    vp_error error = {VP_OK, -1, "", ""};
    vp_model_config config = {0};
    int32_t *blocks = resize(NULL, (size_t)counts->blocks, sizeof *blocks), side = 0;
    vp_result result;
    while (counts->views && (int64_t)(side + 1) * (side + 1) * counts->views <= counts->tokens) side++;
    config.geometry = vp_geometry_default(); /* a view's tokens form a square, for pool */
    config.geometry.crop_px = side;
    config.geometry.patch_px = config.geometry.pool = 1;
    config.geometry.margin_left_patches = config.geometry.margin_right_patches = 0;
    config.vit_block_count = 1;
    config.block_count = counts->blocks;
    for (int32_t i = 0; i < counts->blocks; i++) blocks[i] = i;
    prune.image_tokens = counts->tokens;
    vp_request request = {.views = counts->tokens ? counts->views : 0, .input_count = counts->sequence,
                          .active_blocks = blocks, .active_block_count = counts->blocks, .max_new_tokens = 1,
                          .prune = &prune};
    result = vp_prune_request(&config, &request, VP_WEIGHTS_BF16, pruned, &error);
    if (result != VP_OK) snprintf(reason, capacity, "%s", error.text);
    free(blocks);
    return result == VP_OK;
}
void prune_text(struct text_buffer *out, const vp_pruned *pruned) {
    char part[160];
    snprintf(part, sizeof part, "%d of %d image tokens:", pruned->kept_tokens, pruned->image_tokens);
    text_add_string(out, part);
    for (int32_t i = 0; i < pruned->region_count; i++) {
        snprintf(part, sizeof part, "%s %d rows from block %d", i ? "," : "", pruned->rows[i], pruned->first_block[i]);
        text_add_string(out, part);
    }
    snprintf(part, sizeof part, "; %.1f image tokens per block on average; KV cache %.4g of %.4g MB",
             pruned->mean_image_tokens, (double)pruned->cache_bytes / 1e6, (double)pruned->full_cache_bytes / 1e6);
    text_add_string(out, part);
}
void prune_put(vp_json_writer *writer, const vp_pruned *pruned) {
    PUT(writer, KEY("image_tokens", pruned->image_tokens), KEY("kept_tokens", pruned->kept_tokens),
        KEY("mean_image_tokens_per_block", pruned->mean_image_tokens));
    vp_json_key(writer, "rows_from_block"); /* [first block, rows] */
    vp_json_begin_array(writer);
    for (int32_t i = 0; i < pruned->region_count; i++) {
        PUT(writer, KEY_ARRAY(NULL), KEY(NULL, pruned->first_block[i]), KEY(NULL, pruned->rows[i]), END_ARRAY);
    }
    PUT(writer, END_ARRAY, KEY("positions", pruned->keeps_positions ? "keep" : "compact"),
        KEY("kv_cache_bytes", (int64_t)pruned->cache_bytes),
        KEY("kv_cache_bytes_unpruned", (int64_t)pruned->full_cache_bytes));
}
