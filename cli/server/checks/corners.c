/* corners.c: finds image sizes at which a server's token count is worth comparing with a family's rule. */
#include "server/checks/audit.h"

/* The sizes on a line are `side` pixels wide, high, or both. */
enum direction { ALONG_WIDTH, ALONG_HEIGHT, ALONG_DIAGONAL, DIRECTIONS };
enum { OTHER_SIDE = 480, LINE_BEGIN = 8, LINE_END_MOST = 8192, THIN_SIDE = 64, THIN_RATIO = 200,
       LIMIT_LARGEST_SIDE = 16384 };

struct search {
    const vp_family *family;
    int64_t most_pixels;
    struct corner *corners; size_t count, most;
};

static int64_t root_of(int64_t value) {
    int64_t root = 0;
    while ((root + 1) * (root + 1) <= value) root++;
    return root;
}
static void size_on(enum direction direction, int32_t side, int32_t size[2]) {
    size[0] = direction == ALONG_HEIGHT ? OTHER_SIDE : side;
    size[1] = direction == ALONG_WIDTH ? OTHER_SIDE : side;
}
static int32_t line_end(const struct search *search, enum direction direction) {
    const int64_t end = direction == ALONG_DIAGONAL ? root_of(search->most_pixels) : search->most_pixels / OTHER_SIDE;
    return (int32_t)(end < LINE_END_MOST ? end : LINE_END_MOST);
}
/* Tokens of a size; -1 if the family rejects it. */
static int64_t tokens_at(const vp_family *family, int64_t width, int64_t height) {
    vp_vision_count count;
    if (width < 1 || height < 1 || width > VP_FAMILY_PX_LIMIT || height > VP_FAMILY_PX_LIMIT) return -1;
    return vp_family_count(family, (int32_t)width, (int32_t)height, &count, NULL) == VP_OK ? count.total_tokens : -1;
}
static int64_t tokens_on(const vp_family *family, enum direction direction, int32_t side) {
    int32_t size[2];
    size_on(direction, side, size);
    return tokens_at(family, size[0], size[1]);
}

static int is_new(const struct search *search, int64_t width, int64_t height) {
    for (size_t i = 0; i < search->count; i++)
        if (search->corners[i].width_px == width && search->corners[i].height_px == height) return 0;
    return 1;
}
static int is_taken(const struct search *search, int64_t width, int64_t height) {
    return width * height <= search->most_pixels && tokens_at(search->family, width, height) >= 0;
}
/* Adds a size if the family accepts it, it is small enough, it is new, and there is space. */
static void corner_add(struct search *search, int64_t width, int64_t height, const char *why) {
    struct corner *corner = &search->corners[search->count];
    if (search->count == search->most || !is_taken(search, width, height) || !is_new(search, width, height)) return;
    corner->width_px = (int32_t)width;
    corner->height_px = (int32_t)height;
    corner->why = why;
    vp_family_count(search->family, corner->width_px, corner->height_px, &corner->count, NULL);
    search->count++;
}
/* Adds sizes on a line that belong together, or none of them if there is not enough space. */
static void corners_add(struct search *search, enum direction direction, int32_t first, int count,
                        const char *const *whys) {
    if (search->most - search->count < (size_t)count) return;
    for (int i = 0; i < count; i++) {
        int32_t size[2];
        size_on(direction, first + i, size);
        corner_add(search, size[0], size[1], whys[i]);
    }
}

/* ---- the corners of a rule */
/* Finds the sides of a line at which the count differs from that of one pixel less. Returns their number; the caller
 * frees them. */
static size_t steps_on(const struct search *search, enum direction direction, int32_t **sides) {
    const int32_t end = line_end(search, direction);
    int64_t before = tokens_on(search->family, direction, LINE_BEGIN);
    size_t count = 0;
    *sides = resize(NULL, (size_t)LINE_END_MOST + 1, sizeof **sides);
    for (int32_t side = LINE_BEGIN + 1; side <= end; side++) {
        const int64_t tokens = tokens_on(search->family, direction, side);
        if (tokens >= 0 && before >= 0 && tokens != before) (*sides)[count++] = side;
        before = tokens;
    }
    return count;
}
static void add_steps(struct search *search, int32_t *const sides[DIRECTIONS], const size_t counts[DIRECTIONS],
                      size_t turn, size_t turns, int with_above) {
    static const char *const whys[DIRECTIONS][3] = {
        {"below a width step", "at a width step", "above a width step"},
        {"below a height step", "at a height step", "above a height step"},
        {"below a step for squares", "at a step for squares", "above a step for squares"}};
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        const size_t index = counts[direction] * (2 * turn + 1) / (2 * turns);
        if (counts[direction])
            corners_add(search, (enum direction)direction, sides[direction][index] - 1, with_above ? 3 : 2,
                        whys[direction]);
    }
}
/* Sets a limit of the family so high or low that no image reaches it. Returns 0 if the key cannot have such a value. */
static int lift(const vp_family *family, const vp_family_key *key, vp_family *lifted) {
    static const double largest[] = {1099511627776.0, LIMIT_LARGEST_SIDE, 1120, VP_FAMILY_TILES_LIMIT};
    *lifted = *family;
    if (!strncmp(key->name, "min", 3)) return vp_family_set_number(lifted, key->name, 1, NULL) == VP_OK;
    for (size_t i = 0; i < sizeof largest / sizeof *largest; i++)
        if (vp_family_set_number(lifted, key->name, largest[i], NULL) == VP_OK) return 1;
    return 0;
}
/* Adds the squares at which a lower limit stops and an upper limit starts to have an effect. */
static void add_limits(struct search *search, struct text_list *notes) {
    static const char *const lower[] = {"at a lower limit", "above a lower limit"};
    static const char *const upper[] = {"below an upper limit", "at an upper limit"};
    const int32_t end = line_end(search, ALONG_DIAGONAL);
    vp_family *lifted = resize(NULL, 1, sizeof *lifted);
    for (int i = 0; i < VP_FAMILY_KEYS_LIMIT; i++) {
        const vp_family_key *key = &search->family->preset->keys[i];
        const int is_lower = key->name && !strncmp(key->name, "min", 3);
        const int is_upper = key->slot == VP_SLOT_MAX || key->slot == VP_SLOT_MAX_TOKENS || key->slot == VP_SLOT_SIDE;
        int32_t side = is_lower ? end : LINE_BEGIN;
        if (!key->name || !(is_lower || is_upper) || !lift(search->family, key, lifted)) continue;
        while (side >= LINE_BEGIN && side <= end
               && tokens_on(search->family, ALONG_DIAGONAL, side) == tokens_on(lifted, ALONG_DIAGONAL, side))
            side += is_lower ? -1 : 1;
        if (is_lower ? side >= LINE_BEGIN && side < end : side > LINE_BEGIN && side <= end)
            corners_add(search, ALONG_DIAGONAL, side - is_upper, 2, is_lower ? lower : upper);
        else if (is_upper && side > end)
            text_list_add(notes, "%s = %lld is not tested: no square of at most %lld pixels reaches it", key->name,
                          (long long)search->family->value[key->slot], (long long)search->most_pixels);
    }
    free(lifted);
}
/* The side of the longest image of THIN_SIDE pixels that the family accepts, with a ratio of at most THIN_RATIO. */
static int32_t longest_side(const struct search *search, int is_wide) {
    int64_t good = THIN_SIDE, bad = THIN_SIDE * THIN_RATIO + 1;
    if (bad > search->most_pixels / THIN_SIDE + 1) bad = search->most_pixels / THIN_SIDE + 1;
    while (bad - good > 1) {
        const int64_t middle = (good + bad) / 2;
        const int64_t tokens = tokens_at(search->family, is_wide ? middle : THIN_SIDE, is_wide ? THIN_SIDE : middle);
        if (tokens >= 0) good = middle; else bad = middle;
    }
    return (int32_t)good;
}
/* Adds arbitrary sizes of 16 pixels or more until there are CORNERS_LEAST. */
static void fill(struct search *search) {
    uint32_t state = 1;
    for (int tries = 0; tries < 10000 && search->count < search->most && search->count < CORNERS_LEAST; tries++) {
        int64_t side[2];
        for (int i = 0; i < 2; i++) {
            state = state * 1664525u + 1013904223u;
            side[i] = 16 + (int64_t)(state >> 16) % (16 << (state >> 12 & 7));
        }
        corner_add(search, side[0], side[1], "any");
    }
}

size_t corners_of(const vp_family *family, int64_t most_pixels, size_t most, struct corner *corners,
                  struct text_list *notes) {
    struct search search = {family, most_pixels, corners, 0, most};
    const int64_t side = root_of(most_pixels), long_side = root_of(most_pixels * 16 / 9);
    const size_t turns = most > CORNERS_DEFAULT ? most / 8 : 2;
    int32_t *sides[DIRECTIONS];
    size_t counts[DIRECTIONS];
    for (int i = 0; i < DIRECTIONS; i++) counts[i] = steps_on(&search, (enum direction)i, &sides[i]);
    corner_add(&search, 640, 480, "ordinary");
    corner_add(&search, longest_side(&search, 1), THIN_SIDE, "wide");
    corner_add(&search, THIN_SIDE, longest_side(&search, 0), "thin");
    corner_add(&search, 32, 32, "small");
    corner_add(&search, side, side, "large");
    add_limits(&search, notes);
    add_steps(&search, sides, counts, 0, turns, most > CORNERS_LEAST);
    corner_add(&search, 768, 1024, "ordinary");
    corner_add(&search, 8, 8, "tiny");
    corner_add(&search, long_side, most_pixels / (long_side ? long_side : 1), "large");
    corner_add(&search, most_pixels / (long_side ? long_side : 1), long_side, "large");
    for (size_t turn = 1; turn < turns; turn++) add_steps(&search, sides, counts, turn, turns, most > CORNERS_DEFAULT);
    fill(&search);
    for (int i = 0; i < DIRECTIONS; i++) free(sides[i]);
    return search.count;
}
