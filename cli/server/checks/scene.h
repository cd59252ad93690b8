/* scene.h: draws synthetic pictures for measurements: colour gradients with shapes in front.
 * A size and a number come in; a PNG file comes out. It differs for each number, so that no cache contains it. */
#ifndef VLMPROF_CLI_SCENE_H
#define VLMPROF_CLI_SCENE_H
#include "server/picture.h"
#include <stdint.h>

/* The same size and number give the same file. Free it with picture_free. */
void scene_draw(int32_t width_px, int32_t height_px, uint64_t number, struct picture *picture);

#endif
