/* window.h: reads a file's bytes by offset, through a window that moves along the file. */
#ifndef VLMPROF_CLI_WINDOW_H
#define VLMPROF_CLI_WINDOW_H
#include "base/json_stream.h"

struct window { struct source source; char *data; int64_t start; size_t bytes; };

/* Moves the start of the window to `place`. Returns the byte there; -1 at the end, or if the file cannot be read. */
int window_move(struct window *window, int64_t place);

/* The byte at an offset; -1 at the end. */
static inline int window_byte(struct window *window, int64_t place) {
    if (place >= window->start && place < window->start + (int64_t)window->bytes)
        return (unsigned char)window->data[place - window->start];
    return window_move(window, place);
}
void window_close(struct window *window);

#endif
