/* temporary.h: a test's own folder in $TMPDIR, or in /tmp if that is not set. Define _POSIX_C_SOURCE 200809L (mkdtemp) before the first header. */
#ifndef TEMPORARY_H
#define TEMPORARY_H
#include <stdio.h>
#include <stdlib.h>

/* Makes the folder and writes its path; returns 0 after a message if that fails. */
static inline int temporary_folder(const char *name, char *path, size_t capacity) {
    const char *base = getenv("TMPDIR");
    const int length = snprintf(path, capacity, "%s/vlmprof-%s-XXXXXX", base && *base ? base : "/tmp", name);
    if (length < 0 || (size_t)length >= capacity) {
        fprintf(stderr, "TMPDIR is longer than the tests' %d bytes: %s\n", (int)capacity, base);
        return 0;
    }
    if (mkdtemp(path)) return 1;
    perror(path);
    return 0;
}
#endif
