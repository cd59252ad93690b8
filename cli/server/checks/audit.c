/* audit.c: checks whether a server counts an image's tokens by the rule of a model family. */
#include "server/checks/audit.h"

#include "base/json.h"

#include <math.h>

enum { PLACEHOLDERS_MOST = 8, ENUMERATED_MOST = 16384, SURPLUS_MOST = 4 };

const char *audit_cause_name(audit_cause cause) {
#define CAUSE_NAME(id, name) name,
    static const char *const names[] = {AUDIT_CAUSES(CAUSE_NAME)};
#undef CAUSE_NAME
    return names[cause];
}

/* ---- the rule and its knobs */
vp_result audit_count(const struct audit_rule *rule, int32_t width_px, int32_t height_px, vp_vision_count *count,
                      vp_error *error) {
    const vp_result result = vp_family_count(&rule->family, width_px, height_px, count, error);
    if (result != VP_OK || !rule->is_low_detail) return result;
    count->rows = count->cols = 0;
    count->views = 1;
    count->feature_tokens = 0;
    count->total_tokens = count->marker_tokens;
    return VP_OK;
}
/* The names that servers use for keys of families. */
static const struct { const char *word, *key; } WORDS[] = {
    {"longest_edge", "max_pixels"},        {"shortest_edge", "min_pixels"},    {"max_dynamic_patch", "max_patches"},
    {"min_dynamic_patch", "min_patches"},  {"max_num", "max_patches"},         {"min_num", "min_patches"},
    {"mm_tokens_per_image", "image_seq_length"}, {"num_crops", "max_crops"},   {"max_crops", "num_crops"},
    {"max_image_tokens", "max_soft_tokens"}, {"dynamic_hd", "max_patches"},
    {"pan_and_scan_max_num_crops", "max_num_crops"}, {"pan_and_scan_min_crop_size", "min_crop_size"},
    {"pan_and_scan_min_ratio_to_activate", "min_ratio_to_activate"}};

static vp_result set_value(struct audit_rule *rule, const char *name, const char *text, vp_error *error) {
    vp_result result = vp_family_set(&rule->family, name, text, error);
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS && result == VP_ERR_NOT_FOUND; i++)
        if (!strcmp(WORDS[i].word, name)) result = vp_family_set(&rule->family, WORDS[i].key, text, error);
    if (result != VP_ERR_NOT_FOUND || strcmp(name, "detail") || strcmp(rule->family.preset->rule, "openai_tiles"))
        return result;
    rule->is_low_detail = !strcmp(text, "low");
    return VP_OK;
}
static vp_result set_node(struct audit_rule *rule, const char *name, const vp_json *json, uint32_t node,
                          vp_error *error) {
    vp_result found = VP_ERR_NOT_FOUND;
    char *text;
    if (!node_is(json, node, VP_JSON_OBJECT)) {
        text = node_text(json, node);
        if (!text) text = copy_text(json->text + json->nodes[node].start, (size_t)json->nodes[node].bytes);
        found = set_value(rule, name, text, error);
        free(text);
        return found;
    }
    for (uint32_t i = node + 1; i < json->nodes[node].end; i = json->nodes[i + 1].end) {
        char *key = node_text(json, i);
        const vp_result result = key ? set_node(rule, key, json, i + 1, error) : VP_ERR_NOT_FOUND;
        free(key);
        if (result != VP_OK && result != VP_ERR_NOT_FOUND) return result;
        if (result == VP_OK) found = VP_OK;
    }
    return found;
}
vp_result audit_set_knob(struct audit_rule *rule, const vp_chat_knob *knob, vp_error *error) {
    const char *dot = strrchr(knob->path, '.');
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_result result = parse_json(&parsed, knob->value, strlen(knob->value), error);
    if (result == VP_OK) result = set_node(rule, dot ? dot + 1 : knob->path, &parsed.json, 0, error);
    free(parsed.nodes);
    return result;
}

/* ---- finding rules that fit the counts */
struct evidence { const struct audit_size *sizes; size_t count; };

static int64_t count_of(const vp_family *family, const struct audit_size *size) {
    vp_vision_count count;
    return vp_family_count(family, size->width_px, size->height_px, &count, NULL) == VP_OK ? count.total_tokens : -1;
}
/* The unit to which the resizing rule of Qwen and its relatives rounds a side; 0 if the family has another rule. */
static int64_t rounding_unit(const vp_family *family) {
    return strcmp(family->preset->rule, "smart") ? 0 : family->value[VP_SLOT_PATCH] * family->value[VP_SLOT_MERGE];
}
/* The arithmetic of a server for this rule: transformers uses double and rounds halves to even; llama.cpp uses 32 bits,
 * rounds halves up, and has no side below one unit. */
struct arithmetic { int is_half_up, is_32_bit; };

/* A side in units. */
static int64_t units_of(double side, double unit, struct arithmetic how) {
    const double units = how.is_32_bit ? (double)((float)side / (float)unit) : side / unit;
    const int64_t rounded = (int64_t)(how.is_half_up ? floor(units + 0.5) : rint(units));
    return how.is_32_bit && rounded < 1 ? 1 : rounded;
}
/* The rule's tokens of a size in this arithmetic. source: calc_size_preserved_ratio of llama.cpp's clip.cpp */
static int64_t count_with(const vp_family *family, const struct audit_size *size, struct arithmetic how) {
    const double unit = (double)rounding_unit(family), width = size->width_px, height = size->height_px;
    const double least = (double)family->value[VP_SLOT_MIN], most = (double)family->value[VP_SLOT_MAX];
    int64_t cols = units_of(width, unit, how), rows = units_of(height, unit, how);
    const double pixels = (double)(cols * rows) * unit * unit;
    const int is_large = pixels > most;
    if (!is_large && !(pixels < least)) return cols * rows;
    if (how.is_32_bit) {
        const float area = (float)(width * height), beta = sqrtf(is_large ? area / (float)most : (float)least / area),
                    side = (float)unit;
        cols = (int64_t)(is_large ? floorf((float)width / beta / side) : ceilf((float)width * beta / side));
        rows = (int64_t)(is_large ? floorf((float)height / beta / side) : ceilf((float)height * beta / side));
    } else {
        const double beta = sqrt(is_large ? width * height / most : least / (width * height));
        cols = (int64_t)(is_large ? floor(width / beta / unit) : ceil(width * beta / unit));
        rows = (int64_t)(is_large ? floor(height / beta / unit) : ceil(height * beta / unit));
    }
    return (cols > 1 ? cols : 1) * (rows > 1 ? rows : 1);
}
static int is_usual_offset(int64_t offset) { return offset >= AUDIT_OFFSET_LEAST && offset <= AUDIT_OFFSET_MOST; }
/* Returns 1 if the family gives all counts, except for a usual offset. */
static int fits(const vp_family *family, const struct evidence *evidence, int64_t *offset) {
    for (size_t i = 0; i < evidence->count; i++) {
        const int64_t tokens = count_of(family, &evidence->sizes[i]);
        if (i == 0) *offset = evidence->sizes[i].measured - tokens;
        if (tokens < 0 || evidence->sizes[i].measured - tokens != *offset || !is_usual_offset(*offset)) return 0;
    }
    return 1;
}
static int is_better_offset(int64_t offset, int64_t than) { return llabs(offset) < llabs(than); }
/* 0 1 -1 2 -2 ... */
static int64_t offset_at(int64_t place) { return place % 2 ? (place + 1) / 2 : -place / 2; }

/* The roundest number of a range: a multiple of `unit` times the highest power of two, or of ten. */
static int64_t roundest(int64_t lowest, int64_t highest, int64_t unit) {
    for (int64_t power = INT64_C(1) << 30; power; power /= 2) {
        const int64_t step = unit * power, value = (lowest + step - 1) / step * step;
        if (value <= highest && value > 0) return value;
    }
    for (int64_t step = 1000000000; step > 1; step /= 10)
        if ((lowest + step - 1) / step * step <= highest) return (lowest + step - 1) / step * step;
    return lowest;
}
/* The lowest value of a limit with which the family's count of a size is at least `tokens`; above AUDIT_UNBOUNDED if
 * there is none. */
static int64_t lowest_value(vp_family *family, const char *key, const struct audit_size *size, int64_t tokens) {
    int64_t low = 1, high = AUDIT_UNBOUNDED + 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (vp_family_set_number(family, key, (double)middle, NULL) == VP_OK && count_of(family, size) >= tokens)
            high = middle;
        else low = middle + 1;
    }
    return low;
}
/* Finds the values of a limit in pixels or tokens. Counts grow with the limit. */
static int fit_limit(const vp_family *family, const vp_family_key *key, const struct evidence *evidence, int64_t offset,
                     struct audit_fit *fit) {
    vp_family *tried = resize(NULL, 1, sizeof *tried);
    const int64_t unit = family->value[VP_SLOT_PATCH] * family->value[VP_SLOT_MERGE];
    int64_t low = 1, high = AUDIT_UNBOUNDED;
    int found = 0;
    *tried = *family;
    for (size_t i = 0; i < evidence->count && low <= high; i++) {
        const int64_t tokens = evidence->sizes[i].measured - offset;
        const int64_t from = lowest_value(tried, key->name, &evidence->sizes[i], tokens);
        const int64_t to = lowest_value(tried, key->name, &evidence->sizes[i], tokens + 1) - 1;
        if (from > low) low = from;
        if (to < high) high = to;
    }
    if (low <= high && vp_family_set_number(tried, key->name, (double)low, NULL) == VP_OK)
        found = fits(tried, evidence, &offset);
    free(tried);
    if (found) {
        *fit = (struct audit_fit){key->name, NULL, low, low, high, high - low + 1};
        if (high < AUDIT_UNBOUNDED) fit->value = roundest(low, high, unit > 0 ? unit * unit : 1);
    }
    return found;
}
/* Finds the values of any other key by trying all of them. */
static int fit_value(const vp_family *family, const vp_family_key *key, const struct evidence *evidence,
                     struct audit_fit *fit, int64_t *offset) {
    vp_family *tried = resize(NULL, 1, sizeof *tried);
    const int is_lower = !strncmp(key->name, "min", 3);
    int found = 0;
    *tried = *family;
    for (int64_t value = 0; value <= ENUMERATED_MOST && !(is_lower && value > family->value[VP_SLOT_MAX]); value++) {
        int64_t its_offset = 0;
        if (vp_family_set_number(tried, key->name, (double)value, NULL) != VP_OK || !fits(tried, evidence, &its_offset))
            continue;
        if (!found || is_better_offset(its_offset, *offset)) {
            *fit = (struct audit_fit){key->name, NULL, value, value, value, 1};
            *offset = its_offset;
            found = 1;
        } else if (its_offset == *offset) {
            fit->highest = value;
            fit->values++;
            if ((value & -value) > (fit->value & -fit->value)) fit->value = value;
        }
    }
    free(tried);
    return found;
}
static int is_wide_limit(const vp_family_key *key) {
    return (key->slot == VP_SLOT_MIN || key->slot == VP_SLOT_MAX) && key->fallback > VP_FAMILY_TILES_LIMIT
           && strncmp(key->name, "size", 4) && strcmp(key->name, "max_soft_tokens");
}
static const vp_family_key *key_of(const vp_family *family, vp_family_slot slot) {
    for (int i = 0; i < VP_FAMILY_KEYS_LIMIT; i++)
        if (family->preset->keys[i].name && family->preset->keys[i].slot == slot) return &family->preset->keys[i];
    return NULL;
}
/* Finds a lower and an upper limit together: counts that no upper limit explains determine the lower one. */
static int fit_two_limits(const vp_family *family, const struct evidence *evidence, int64_t offset,
                          struct audit_verdict *verdict) {
    const vp_family_key *lower = key_of(family, VP_SLOT_MIN), *upper = key_of(family, VP_SLOT_MAX);
    vp_family *tried = resize(NULL, 1, sizeof *tried);
    struct audit_size *others = resize(NULL, evidence->count, sizeof *others);
    struct evidence rest = {others, 0};
    int found = 0;
    *tried = *family;
    if (lower && upper && is_wide_limit(lower) && is_wide_limit(upper)
        && vp_family_set_number(tried, lower->name, 1, NULL) == VP_OK
        && vp_family_set_number(tried, upper->name, (double)AUDIT_UNBOUNDED, NULL) == VP_OK) {
        for (size_t i = 0; i < evidence->count; i++)
            if (count_of(tried, &evidence->sizes[i]) >= evidence->sizes[i].measured - offset)
                others[rest.count++] = evidence->sizes[i];
        found = rest.count && fit_limit(tried, upper, &rest, offset, &verdict->fits[0])
                && vp_family_set_number(tried, upper->name, (double)verdict->fits[0].value, NULL) == VP_OK
                && fit_limit(tried, lower, evidence, offset, &verdict->fits[1]);
    }
    FREE_ALL(others, tried);
    verdict->fit_count = found ? 2 : 0;
    return found;
}
/* Looks for values of one key of the family, or of both limits, with which its rule gives all counts. */
static int find_limit(const struct audit_rule *rule, const struct evidence *evidence, struct audit_verdict *verdict) {
    const vp_family *family = &rule->family;
    for (int turn = 0; turn < 3; turn++) { /* limits first, the upper one first of all: users configure these */
        for (int i = 0; i < VP_FAMILY_KEYS_LIMIT && !verdict->fit_count; i++) {
            const vp_family_key *key = &family->preset->keys[i];
            const int its_turn = key->slot == VP_SLOT_MAX ? 0 : key->slot == VP_SLOT_MIN ? 1 : 2;
            if (!key->name || its_turn != turn || key->slot == VP_SLOT_RATIO) continue;
            /* a tile so large that there is only one: unlikely */
            if (verdict->is_constant && key->slot >= VP_SLOT_TILE && key->slot <= VP_SLOT_MERGE) continue;
            if (!is_wide_limit(key)) {
                verdict->fit_count = (size_t)fit_value(family, key, evidence, &verdict->fits[0], &verdict->fit_offset);
                continue;
            }
            for (int64_t place = 0; place <= 2 * AUDIT_OFFSET_MOST && !verdict->fit_count; place++) {
                const int64_t offset = offset_at(place);
                if (!is_usual_offset(offset)) continue;
                verdict->fit_offset = offset;
                verdict->fit_count = (size_t)fit_limit(family, key, evidence, offset, &verdict->fits[0]);
            }
        }
    }
    for (int64_t offset = 0; offset <= AUDIT_OFFSET_MOST && !verdict->fit_count; offset++) {
        verdict->fit_offset = offset;
        fit_two_limits(family, evidence, offset, verdict);
    }
    for (size_t i = 0; i < verdict->fit_count; i++) {
        const char *word = family->preset->words;
        const vp_family_key *split = key_of(family, VP_SLOT_SPLIT);
        if (!word || !split || strcmp(split->name, verdict->fits[i].key)) continue;
        for (int64_t k = 0; k < verdict->fits[i].value; k++) word = strchr(word, ' ') + 1;
        verdict->fits[i].word = word;
    }
    return verdict->fit_count > 0;
}
/* Returns 1 if the family's rule gives all counts in this arithmetic, except for a usual offset. */
static int fits_with(const vp_family *family, const struct evidence *evidence, struct arithmetic how, int64_t *offset) {
    *offset = evidence->sizes[0].measured - count_with(family, &evidence->sizes[0], how);
    for (size_t i = 0; i < evidence->count; i++)
        if (evidence->sizes[i].measured - count_with(family, &evidence->sizes[i], how) != *offset) return 0;
    return is_usual_offset(*offset);
}
/* Returns 1 if the rule with its own limits gives all counts when computed in 32 bits, with or without rounding halves
 * up, but not by only rounding halves up. */
static int find_32_bit(const struct audit_rule *rule, const struct evidence *evidence, struct audit_verdict *verdict) {
    const vp_family *family = &rule->family;
    int64_t unused;
    if (!rounding_unit(family)) return 0;
    for (size_t i = 0; i < evidence->count; i++) /* relatives with further steps are not tested */
        if (count_with(family, &evidence->sizes[i], (struct arithmetic){0, 0}) != count_of(family, &evidence->sizes[i]))
            return 0;
    if (fits_with(family, evidence, (struct arithmetic){1, 0}, &unused)) return 0;
    for (verdict->is_half_up = 0; verdict->is_half_up < 2; verdict->is_half_up++)
        if (fits_with(family, evidence, (struct arithmetic){verdict->is_half_up, 1}, &verdict->fit_offset)) return 1;
    verdict->is_half_up = 0;
    return 0;
}
/* Returns 1 if the counts are those of llama.cpp, with its own limits of 8 to 4096 tokens, for a rule like Qwen's. */
static int find_llama_cpp(const struct audit_rule *rule, const struct evidence *evidence,
                          struct audit_verdict *verdict) {
    struct audit_rule *limited = zeroed(1, sizeof *limited);
    const int64_t unit = rounding_unit(&rule->family);
    const vp_family_key *keys[] = {key_of(&rule->family, VP_SLOT_MAX), key_of(&rule->family, VP_SLOT_MIN)};
    const int64_t values[] = {4096 * unit * unit, 8 * unit * unit};
    int found = unit && keys[0] && keys[1];
    limited->family = rule->family;
    for (int i = 1; i >= 0 && found; i--)
        found = vp_family_set_number(&limited->family, keys[i]->name, (double)values[i], NULL) == VP_OK;
    found = found && find_32_bit(limited, evidence, verdict);
    for (int i = 0; i < 2 && found; i++)
        verdict->fits[verdict->fit_count++] =
            (struct audit_fit){keys[i]->name, NULL, values[i], values[i], values[i], 1};
    free(limited);
    return found;
}
/* Returns 1 if the rule gives all counts, perhaps with other limits, when a side of n + 1/2 units is rounded up. Qwen's
 * own code rounds it to even; llama.cpp does not. */
static int find_rounding(const struct audit_rule *rule, const struct evidence *evidence,
                         struct audit_verdict *verdict) {
    const int64_t unit = rounding_unit(&rule->family);
    struct audit_size *sizes = resize(NULL, evidence->count, sizeof *sizes);
    const struct evidence rounded = {sizes, evidence->count};
    int halves = 0, found;
    for (size_t i = 0; i < evidence->count; i++) {
        sizes[i] = evidence->sizes[i];
        for (int is_height = 0; is_height < 2; is_height++) {
            int32_t *side = is_height ? &sizes[i].height_px : &sizes[i].width_px;
            if (!unit || *side * 2 % unit || !(*side * 2 / unit % 2)) continue;
            ++*side; /* just above the half */
            halves++;
        }
    }
    found = halves && (fits(&rule->family, &rounded, &verdict->fit_offset) || find_limit(rule, &rounded, verdict));
    free(sizes);
    return found;
}
/* Finds families with a published rule that gives all counts, sorted by offset. */
static int find_families(const struct audit_rule *rule, const struct evidence *evidence,
                         struct audit_verdict *verdict) {
    vp_family *tried = resize(NULL, 1, sizeof *tried);
    int64_t offsets[AUDIT_FAMILIES];
    for (int32_t i = 0; vp_family_at(i) && verdict->family_count < AUDIT_FAMILIES; i++) {
        size_t at = verdict->family_count;
        int64_t offset;
        vp_family_default(vp_family_at(i), tried);
        if (tried->preset == rule->family.preset || !fits(tried, evidence, &offset)) continue;
        for (; at > 0 && is_better_offset(offset, offsets[at - 1]); at--) {
            offsets[at] = offsets[at - 1];
            verdict->families[at] = verdict->families[at - 1];
        }
        offsets[at] = offset;
        verdict->families[at] = tried->preset;
        verdict->family_count++;
    }
    free(tried);
    return verdict->family_count > 0;
}

/* Finds the first other family whose rule gives all counts with other limits than the published ones. */
static int find_family_limits(const struct audit_rule *rule, const struct evidence *evidence,
                              struct audit_verdict *verdict) {
    struct audit_rule *other = zeroed(1, sizeof *other);
    for (int32_t i = 0; vp_family_at(i) && !verdict->family_count; i++) {
        vp_family_default(vp_family_at(i), &other->family);
        if (other->family.preset == rule->family.preset || !find_limit(other, evidence, verdict)) continue;
        verdict->families[verdict->family_count++] = other->family.preset;
    }
    free(other);
    return verdict->family_count > 0;
}
/* measured - rule at a size, without `extra` tokens for each row or view of the rule's grid. */
static int64_t surplus_of(const vp_family *family, const struct audit_size *size, audit_cause cause, int64_t extra) {
    vp_vision_count count = {0};
    vp_family_count(family, size->width_px, size->height_px, &count, NULL);
    return size->measured - size->by_rule - extra * (cause == AUDIT_ROWS ? count.rows : count.views);
}
/* Returns 1 if the counts are the rule's plus the same number for each row or view, or the same share at each
 * size: separators, markers or another scale. */
static int find_surplus(const struct audit_rule *rule, const struct evidence *evidence, struct audit_verdict *verdict) {
    const struct audit_size *sizes = evidence->sizes;
    double low = HUGE_VAL, high = 0;
    for (verdict->cause = AUDIT_ROWS; verdict->cause <= AUDIT_VIEWS; verdict->cause++)
        for (verdict->extra = -SURPLUS_MOST; verdict->extra <= SURPLUS_MOST; verdict->extra++) {
            size_t same = 0;
            verdict->fit_offset = surplus_of(&rule->family, sizes, verdict->cause, verdict->extra);
            while (same < evidence->count && surplus_of(&rule->family, &sizes[same], verdict->cause, verdict->extra)
                                                 == verdict->fit_offset)
                same++;
            if (same == evidence->count && is_usual_offset(verdict->fit_offset)) return 1;
        }
    verdict->fit_offset = 0;
    for (size_t i = 0; i < evidence->count; i++) { /* rounding changes a count by up to a token */
        const double rule_tokens = (double)sizes[i].by_rule, measured = (double)sizes[i].measured;
        low = fmin(low, (measured + 1) / rule_tokens);
        high = fmax(high, (measured - 1) / rule_tokens);
    }
    verdict->cause = AUDIT_SHARE;
    verdict->share = (low + high) / 2;
    return evidence->count > 2 && high <= low && fabs(verdict->share - 1) > 0.005;
}

/* ---- the verdict */
/* Returns 1 if requests without the knobs have the same counts. *is_silent: 1 if the rule also gives the same. */
static int is_knob_ignored(const struct evidence *evidence, int *is_silent) {
    size_t asked = 0, same = 0, differ_by_rule = 0;
    for (size_t i = 0; i < evidence->count; i++) {
        const struct audit_size *size = &evidence->sizes[i];
        if (!size->has_without) continue;
        asked++;
        same += size->measured_without == size->measured;
        differ_by_rule += size->by_rule_without != size->by_rule;
    }
    *is_silent = asked && same == asked && !differ_by_rule;
    return asked && same == asked;
}
/* Returns 1 if the images that differ from the rule add hardly a token, and others follow it. */
static int are_some_dropped(const struct evidence *evidence, const struct audit_verdict *verdict) {
    size_t count = 0;
    for (size_t i = 0; i < evidence->count; i++)
        count += evidence->sizes[i].measured <= PLACEHOLDERS_MOST && evidence->sizes[i].by_rule > PLACEHOLDERS_MOST;
    return count && count == verdict->different && count < evidence->count;
}
static void find_cause(const struct audit_rule *rule, const struct evidence *evidence, int64_t varied_by_rule,
                       struct audit_verdict *verdict) {
    int is_silent = 0;
    const int is_ignored = is_knob_ignored(evidence, &is_silent);
    if (are_some_dropped(evidence, verdict)) verdict->cause = AUDIT_DROPPED;
    else if (verdict->is_constant && verdict->constant <= PLACEHOLDERS_MOST)
        verdict->cause = verdict->constant > 0 ? AUDIT_PLACEHOLDERS : AUDIT_DROPPED;
    else if (is_ignored && !is_silent) {
        verdict->cause = AUDIT_KNOB_IGNORED;
        find_limit(rule, evidence, verdict);
    } else if (!verdict->is_constant
               && (find_32_bit(rule, evidence, verdict) || find_llama_cpp(rule, evidence, verdict)))
        verdict->cause = AUDIT_32_BIT;
    else if (!rule->is_low_detail && find_limit(rule, evidence, verdict)) {
        verdict->cause = AUDIT_LIMIT;
        find_families(rule, evidence, verdict);
    } else if (!verdict->is_constant && find_rounding(rule, evidence, verdict)) verdict->cause = AUDIT_ROUNDING;
    else if (verdict->is_constant && varied_by_rule) {
        verdict->cause = AUDIT_FIXED;
        find_families(rule, evidence, verdict);
    } else if (find_families(rule, evidence, verdict)) verdict->cause = AUDIT_FAMILY;
    else if (!rule->is_low_detail && find_surplus(rule, evidence, verdict)) return;
    else if (!rule->is_low_detail && find_family_limits(rule, evidence, verdict)) verdict->cause = AUDIT_FAMILY;
    else verdict->cause = AUDIT_UNEXPLAINED;
}
/* The usual offset that most sizes, at least two, have; 0 if there is none. */
static int64_t common_offset(const struct evidence *evidence) {
    int64_t best = 0;
    size_t most = 1;
    for (int64_t offset = AUDIT_OFFSET_LEAST; offset <= AUDIT_OFFSET_MOST; offset++) {
        size_t count = 0;
        for (size_t i = 0; i < evidence->count; i++)
            count += evidence->sizes[i].measured - evidence->sizes[i].by_rule == offset;
        if (count > most || (count == most && count > 1 && is_better_offset(offset, best))) {
            best = offset;
            most = count;
        }
    }
    return best;
}
void audit_judge(const struct audit_rule *rule, const struct audit_size *sizes, size_t count,
                 struct audit_verdict *verdict) {
    const struct evidence evidence = {sizes, count};
    int is_same_offset = 1, varied_by_rule = 0, is_silent = 0;
    memset(verdict, 0, sizeof *verdict);
    verdict->offset = sizes[0].measured - sizes[0].by_rule;
    verdict->constant = sizes[0].measured;
    verdict->is_constant = 1;
    verdict->first = count;
    for (size_t i = 0; i < count; i++) {
        verdict->is_constant &= sizes[i].measured == verdict->constant;
        varied_by_rule |= sizes[i].by_rule != sizes[0].by_rule;
        is_same_offset &= sizes[i].measured - sizes[i].by_rule == verdict->offset;
    }
    verdict->is_equal = is_same_offset && (varied_by_rule || is_usual_offset(verdict->offset))
                        && !(verdict->is_constant && verdict->constant <= 0);
    if (verdict->is_equal) {
        if (is_knob_ignored(&evidence, &is_silent))
            verdict->without_effect = is_silent ? AUDIT_BY_RULE : AUDIT_AS_STARTED;
        return;
    }
    verdict->offset = verdict->is_constant ? 0 : common_offset(&evidence);
    for (size_t i = 0; i < count; i++)
        if (sizes[i].measured - sizes[i].by_rule != verdict->offset && !verdict->different++) verdict->first = i;
    find_cause(rule, &evidence, varied_by_rule, verdict);
}

/* ---- as text */
static void add_fits(const struct audit_verdict *verdict, struct text_buffer *line) {
    char text[200];
    for (size_t i = 0; i < verdict->fit_count; i++) {
        const struct audit_fit *fit = &verdict->fits[i];
        text_add_string(line, i ? " and " : "");
        if (fit->word) snprintf(text, sizeof text, "%s = %.*s", fit->key, (int)strcspn(fit->word, " "), fit->word);
        else if (fit->lowest == fit->highest) snprintf(text, sizeof text, "%s = %lld", fit->key, (long long)fit->value);
        else if (fit->highest >= AUDIT_UNBOUNDED)
            snprintf(text, sizeof text, "%s of at least %lld", fit->key, (long long)fit->lowest);
        else
            snprintf(text, sizeof text, "%s = %lld (%s from %lld to %lld)", fit->key, (long long)fit->value,
                     fit->values > fit->highest - fit->lowest ? "any value" : "or others", (long long)fit->lowest,
                     (long long)fit->highest);
        text_add_string(line, text);
    }
    if (verdict->fit_offset)
        text_add_format(line, ", with %+lld tokens around every image", (long long)verdict->fit_offset);
}
static void add_families(const struct audit_verdict *verdict, struct text_buffer *line) {
    for (size_t i = 0; i < verdict->family_count && i < 6; i++) {
        text_add_string(line, i ? ", " : "");
        text_add_string(line, verdict->families[i]->name);
    }
    if (verdict->family_count > 6) text_add_string(line, " ...");
}
static void cause_words(const struct audit_rule *rule, const struct audit_verdict *verdict, struct text_list *out) {
    const char *family = rule->family.preset->name;
    struct text_buffer fits_text = {NULL, 0, 0}, families = {NULL, 0, 0};
    add_fits(verdict, &fits_text);
    add_families(verdict, &families);
    switch (verdict->cause) {
    case AUDIT_DROPPED:
        if (!verdict->is_constant)
            text_list_add(out, "image dropped: %zu image%s add%s almost no tokens; the others follow the rule; "
                               "run with --repeat 10 to see whether it is always the same ones", verdict->different,
                          plural_s((int64_t)verdict->different), verdict->different == 1 ? "s" : "");
        else text_list_add(out, "image dropped: no image adds a token to the prompt; the server did not pass it to the "
                           "model, or its prompt_tokens exclude images");
        break;
    case AUDIT_PLACEHOLDERS:
        text_list_add(out, "placeholders counted: every image adds %lld token%s; the server counts the placeholder in "
                           "the text, not the model's image tokens, or it dropped the image",
                      (long long)verdict->constant, plural_s((int64_t)verdict->constant));
        break;
    case AUDIT_KNOB_IGNORED:
        text_list_add(out, "knob ignored: the counts are the same with and without it%s%s",
                      verdict->fit_count ? "; they fit " : "", verdict->fit_count ? fits_text.data : "");
        break;
    case AUDIT_LIMIT:
        text_list_add(out, "another limit configured: all counts fit %s with %s%s%s", family, fits_text.data,
                      verdict->family_count ? "; they also fit the published rule of " : "",
                      verdict->family_count ? families.data : "");
        break;
    case AUDIT_32_BIT:
        text_list_add(out, "llama.cpp's 32-bit square root: all counts fit %s and %s if the size is computed in 32 "
                           "bits%s; at a limit a side is then one unit of %lld px longer or shorter",
                      family, verdict->fit_count ? fits_text.data : "these limits",
                      verdict->is_half_up ? ", with halves rounded up" : "",
                      (long long)rounding_unit(&rule->family));
        break;
    case AUDIT_ROUNDING:
        text_list_add(out, "halves rounded up: the server rounds a side of n + 1/2 units of %lld px up, the rule to "
                           "even; with rounding up, all counts fit%s%s",
                      (long long)rounding_unit(&rule->family),
                      verdict->fit_count ? " " : "", verdict->fit_count ? fits_text.data : "");
        break;
    case AUDIT_FAMILY:
        text_list_add(out, "another family: all counts fit the %srule of %s%s%s",
                      verdict->fit_count ? "" : "published ", families.data, verdict->fit_count ? " with " : "",
                      verdict->fit_count ? fits_text.data : "");
        break;
    case AUDIT_FIXED:
        text_list_add(out, "fixed size: every image costs %lld tokens, whatever its size, but by this rule the cost "
                           "depends on the size%s%s", (long long)verdict->constant,
                      verdict->family_count ? "; this is the count of " : "",
                      verdict->family_count ? families.data : "");
        break;
    case AUDIT_ROWS: case AUDIT_VIEWS:
        text_list_add(out, "tokens per %s: all counts fit %s with %+lld token%s for each %s%s: separators or markers "
                           "that only the server or only the rule counts",
                      verdict->cause == AUDIT_ROWS ? "row" : "view", family, (long long)verdict->extra,
                      plural_s((int64_t)llabs(verdict->extra)), verdict->cause == AUDIT_ROWS ? "row of tokens" : "view",
                      verdict->fit_offset ? fits_text.data : "");
        break;
    case AUDIT_SHARE:
        text_list_add(out, "more or fewer everywhere: the server counts %+.1f %% at all sizes; it may multiply the "
                           "tokens that it bills, resize images by %+.1f %% per side before its own rule, or have "
                           "another patch "
                           "size or merge: compare its preprocessor_config.json (vlmprof tile --checkpoint)",
                      100 * (verdict->share - 1), 100 * (sqrt(verdict->share) - 1));
        break;
    case AUDIT_UNEXPLAINED:
        text_list_add(out, "unknown: neither another limit of %s nor another family gives these counts", family);
        break;
    default: break;
    }
    FREE_ALL(fits_text.data, families.data);
}
void audit_words(const struct audit_rule *rule, const struct audit_size *sizes, size_t count,
                 const struct audit_verdict *verdict, struct text_list *out) {
    const char *family = rule->family.preset->name;
    if (verdict->is_equal && !verdict->offset)
        text_list_add(out, count == 1 ? "equal: the server counts the %zu size by %s's rule"
                                      : "equal: the server counts all %zu sizes by %s's rule", count, family);
    else if (verdict->is_equal)
        text_list_add(out, "equal except for a constant offset: the server counts %lld token%s %s for every image; "
                           "otherwise all %zu sizes follow %s's rule", llabs(verdict->offset),
                      llabs(verdict->offset) == 1 ? "" : "s", verdict->offset < 0 ? "fewer" : "more", count, family);
    else {
        const struct audit_size *first = &sizes[verdict->first];
        char offset[80] = "";
        if (verdict->offset)
            snprintf(offset, sizeof offset, "; other sizes have an offset of %+lld", (long long)verdict->offset);
        text_list_add(out, "different: %zu of %zu sizes; the first is %dx%d: %lld tokens by %s's rule, %lld "
                           "counted by the server (%+lld%s)", verdict->different, count, first->width_px,
                      first->height_px, (long long)first->by_rule, family, (long long)first->measured,
                      (long long)(first->measured - first->by_rule), offset);
        cause_words(rule, verdict, out);
    }
    if (verdict->without_effect)
        text_list_add(out, "without the knobs, the server's counts are the same: %s",
                      verdict->without_effect == AUDIT_BY_RULE ? "by the rule, they change nothing at these sizes"
                                                               : "the server already seems to be configured this way");
}
