/* scene.h: made-up pictures for requests that measure: colours that run into each other, and shapes before them.
 * A size and a number come in; a PNG file comes out, another one for each number, so that no cache knows it. */
#ifndef VLMPROF_CLI_SCENE_H
#define VLMPROF_CLI_SCENE_H
#include "server/picture.h"
#include <stdint.h>

/* The same size and number make the same file. Release with picture_free. */
void scene_draw(int32_t width_px, int32_t height_px, uint64_t number, struct picture *picture);

#endif
