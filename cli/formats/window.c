/* window.c: reads a file's bytes by offset, through a window that moves along the file. */
#include "formats/window.h"

#include <stdlib.h>

int window_move(struct window *window, int64_t place) {
    if (!window->data) window->data = resize(NULL, WINDOW_BYTES, 1);
    ssize_t got = source_read(&window->source, place, window->data, WINDOW_BYTES);
    window->start = place;
    window->bytes = got > 0 ? (size_t)got : 0;
    return got > 0 ? (unsigned char)window->data[0] : -1;
}
void window_close(struct window *window) {
    source_close(&window->source);
    free(window->data);
    window->data = NULL;
    window->bytes = 0;
}
