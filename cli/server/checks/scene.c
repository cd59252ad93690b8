/* scene.c: draws synthetic pictures for measurements: colour gradients with shapes in front. */
#include "server/checks/audit.h"

enum { SHAPES = 6 };
/* A shape, in thousandths of the picture's sides. */
struct shape { int64_t across, down, half_width, half_height; int is_round; uint8_t rgb[3]; };

/* splitmix64 */
static uint64_t next_of(uint64_t *state) {
    uint64_t bits = *state += 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}
static int64_t pick(uint64_t *state, int64_t least, int64_t most) {
    return least + (int64_t)(next_of(state) % (uint64_t)(most - least + 1));
}
static void pick_colour(uint64_t *state, uint8_t rgb[3]) {
    for (int i = 0; i < 3; i++) rgb[i] = (uint8_t)pick(state, 20, 235);
}
static int is_inside(const struct shape *shape, int64_t across, int64_t down) {
    const int64_t x = llabs(across - shape->across), y = llabs(down - shape->down);
    const int64_t a = shape->half_width, b = shape->half_height;
    return shape->is_round ? x * x * b * b + y * y * a * a <= a * a * b * b : x <= a && y <= b;
}
void scene_draw(int32_t width_px, int32_t height_px, uint64_t number, struct picture *picture) {
    uint8_t *rgb = resize(NULL, (size_t)width_px * (size_t)height_px, 3), *pixel = rgb, corner[4][3];
    struct shape shapes[SHAPES];
    uint64_t state = number;
    for (int i = 0; i < 4; i++) pick_colour(&state, corner[i]);
    for (int i = 0; i < SHAPES; i++) {
        shapes[i] = (struct shape){pick(&state, 0, 1000), pick(&state, 0, 1000),   pick(&state, 30, 250),
                                   pick(&state, 30, 250), (int)pick(&state, 0, 1), {0, 0, 0}};
        pick_colour(&state, shapes[i].rgb);
    }
    for (int32_t row = 0; row < height_px; row++) {
        const int64_t down = (int64_t)row * 1000 / height_px;
        for (int32_t column = 0; column < width_px; column++, pixel += 3) {
            const int64_t across = (int64_t)column * 1000 / width_px;
            const uint8_t *shape = NULL;
            for (int i = 0; i < SHAPES; i++) if (is_inside(&shapes[i], across, down)) shape = shapes[i].rgb;
            for (int i = 0; i < 3; i++) {
                const int64_t upper = corner[0][i] * (1000 - across) + corner[1][i] * across;
                const int64_t lower = corner[2][i] * (1000 - across) + corner[3][i] * across;
                pixel[i] = shape ? shape[i] : (uint8_t)((upper * (1000 - down) + lower * down) / 1000000);
            }
        }
    }
    for (int i = 0; i < 3; i++) rgb[i] = (uint8_t)(number >> 8 * i); /* pictures of one pixel also differ */
    picture_of_pixels(rgb, width_px, height_px, picture);
    free(rgb);
}
