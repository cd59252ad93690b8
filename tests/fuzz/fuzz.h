/* fuzz.h: what the fuzzers share: a condition that must be true, a program that prints nothing, files in memory.
 * Linux only. Include it before any other header. */
#ifndef FUZZ_H
#define FUZZ_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/support/temporary.h"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MUST(condition) \
    do { \
        if (!(condition)) { \
            dprintf(STDERR_FILENO, "%s: line %d: %s\n", __FILE__, __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* From the first call on, what the program prints goes nowhere. Reports of MUST and of the sanitizers go to the descriptor and stay visible. */
static inline void fuzz_silence(void) {
    static FILE *nowhere;
    if (nowhere) return;
    nowhere = fopen("/dev/null", "w");
    MUST(nowhere != NULL);
    setvbuf(nowhere, NULL, _IOFBF, 1 << 16);
    stderr = stdout = nowhere;
}

/* What the program prints on stdout from fuzz_listen on; the text is good until the next call. */
static struct { FILE *out; char *text; size_t bytes; } fuzz_heard;
static inline void fuzz_listen(void) {
    fuzz_silence();
    if (!fuzz_heard.out) fuzz_heard.out = open_memstream(&fuzz_heard.text, &fuzz_heard.bytes);
    MUST(fuzz_heard.out != NULL);
    rewind(fuzz_heard.out);
    stdout = fuzz_heard.out;
}
static inline const char *fuzz_said(size_t *bytes) {
    MUST(fflush(fuzz_heard.out) == 0);
    *bytes = fuzz_heard.bytes;
    return fuzz_heard.text;
}

/* A file in memory: made once, filled again for each input. All zero at first; its path stays. */
struct memory_file { char path[32]; int fd; };
static inline const char *memory_file_fill(struct memory_file *file, const void *data, size_t bytes) {
    if (!file->path[0]) {
        file->fd = memfd_create("fuzz", MFD_CLOEXEC);
        MUST(file->fd >= 0);
        snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
    }
    MUST(pwrite(file->fd, data, bytes, 0) == (ssize_t)bytes && ftruncate(file->fd, (off_t)bytes) == 0);
    return file->path;
}

/* Splits an input in two after its first 0xFF. Returns the bytes before it; *second is NULL when there is none. */
static inline size_t fuzz_split(const uint8_t *data, size_t bytes, const uint8_t **second, size_t *second_bytes) {
    const uint8_t *at = bytes ? (const uint8_t *)memchr(data, 0xFF, bytes) : NULL;
    *second = at ? at + 1 : NULL;
    *second_bytes = at ? bytes - (size_t)(at + 1 - data) : 0;
    return at ? (size_t)(at - data) : bytes;
}

#endif
