/* image.c: an image file to RGB.
 * The file is read whole and decoded by the library; an error becomes one line that names the file once. */
#include "tile/image.h"

#include "base/console.h"
#include "base/files.h"
#include "vlmprof.h"
#include "vlmprof_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int load_image(const char *path, vp_image *image, char *reason, size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    char *file = NULL, line[LINE_BYTES];
    size_t bytes = 0;
    vp_result result = vp_file_read(path, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
    if (result == VP_OK) result = vp_image_decode((const uint8_t *)file, bytes, image, &error);
    free(file);
    if (result == VP_OK) return 0;
    error_line(line, sizeof line, result, &error);
    if (strstr(line, path)) snprintf(reason, capacity, "%s", line);
    else snprintf(reason, capacity, "%.180s: %.320s", path, line);
    return result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT;
}
