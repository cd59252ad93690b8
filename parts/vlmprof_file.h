/* vlmprof_file.h - v0.2.0 - a whole file into memory, errors with their reason - MIT licence
 *
 * Reads files whole and says why that failed. It uses stdio and malloc.
 *
 * Needs vlmprof.h, and includes what is missing.
 * Define VLMPROF_IMPLEMENTATION in one file, for all headers of vlmprof that it includes, or
 * VLMPROF_FILE_IMPLEMENTATION for this one alone. The manual stands in vlmprof.h. */
#ifndef VLMPROF_FILE_H
#define VLMPROF_FILE_H
/* strict ISO mode hides POSIX unless it is asked for before the first system header */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_FILE_IMPLEMENTATION)) \
    && !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE) && !defined(_POSIX_C_SOURCE)
#define _DEFAULT_SOURCE 1
#endif
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a whole file (or pipe) into memory from malloc, followed by a NUL that is not counted.
 * in:      limit_bytes  a longer file is VP_ERR_RANGE
 * out:     text, bytes  on success only; release text with free
 * returns: VP_OK; VP_ERR_NOT_FOUND; VP_ERR_READ (a folder, no permission, a read error); VP_ERR_RANGE; VP_ERR_MEMORY
 * threads: reentrant */
VP_API vp_result vp_file_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, vp_error *error);
/* The error of a file that cannot be opened, from errno.
 * returns: VP_ERR_NOT_FOUND, VP_ERR_READ or VP_ERR_MEMORY, as it stands in error->code */
VP_API vp_result vp_file_failed(const char *path, vp_error *error);
/* vp_fail with a text that printf formats. */
VP_API vp_result vp_failf(vp_error *error, vp_result code, int64_t offset, const char *where, const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif /* VLMPROF_FILE_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_FILE_IMPLEMENTATION)) \
    && !defined(VLMPROF_FILE_IMPLEMENTATION_DONE)
#define VLMPROF_FILE_IMPLEMENTATION_DONE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#ifdef __cplusplus
extern "C" {
#endif

VP_API vp_result vp_failf(vp_error *error, vp_result code, int64_t offset, const char *where, const char *format, ...) {
    char text[sizeof error->text];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return vp_fail(error, code, offset, where, text);
}

VP_API vp_result vp_file_failed(const char *path, vp_error *error) {
    int code = errno;
    if (code == ENOENT || code == ENOTDIR) return vp_fail(error, VP_ERR_NOT_FOUND, -1, path, "there is no such file");
    if (code == EACCES) return vp_fail(error, VP_ERR_READ, -1, path, "the file may not be read: permission denied");
    if (code == ENOMEM) return vp_fail(error, VP_ERR_MEMORY, -1, path, "not enough memory to open the file");
    return vp_failf(error, VP_ERR_READ, -1, path, "the file cannot be opened (errno %d)", code);
}

VP_API vp_result vp_file_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, vp_error *error) {
    struct stat info;
    FILE *file;
    char *data = NULL;
    size_t used = 0, capacity = 65536;
    vp_result result = VP_OK;
    if (!path || !text || !bytes) return vp_fail(error, VP_ERR_RANGE, -1, "vp_file_read", "a required pointer is NULL");
    if (stat(path, &info) != 0) return vp_file_failed(path, error);
    if (S_ISDIR(info.st_mode)) return vp_fail(error, VP_ERR_READ, -1, path, "this is a folder, not a file");
    file = fopen(path, "rb");
    if (!file) return vp_file_failed(path, error);
    if (S_ISREG(info.st_mode) && info.st_size >= 0 && (uint64_t)info.st_size < (uint64_t)(SIZE_MAX / 4))
        capacity = (size_t)info.st_size + 2;
    /* the size is only a hint: a pipe has none, and a file may grow. Reading one byte beyond the limit shows that it
     * is exceeded. */
    if (limit_bytes > SIZE_MAX - 2) limit_bytes = SIZE_MAX - 2;
    if (capacity > limit_bytes + 2) capacity = limit_bytes + 2;
    for (;;) {
        char *grown = (char *)realloc(data, capacity);
        if (!grown) { result = vp_fail(error, VP_ERR_MEMORY, -1, path, "not enough memory for the file"); break; }
        data = grown;
        used += fread(data + used, 1, capacity - 1 - used, file);
        if (ferror(file)) {
            result = vp_fail(error, VP_ERR_READ, (int64_t)used, path, "reading the file failed");
            break;
        }
        if (used > limit_bytes) {
            result = vp_failf(error, VP_ERR_RANGE, -1, path, "the file is larger than the limit of %llu bytes",
                              (unsigned long long)limit_bytes);
            break;
        }
        if (used < capacity - 1) break; /* end of file */
        capacity = capacity > (limit_bytes + 2) / 2 ? limit_bytes + 2 : capacity * 2;
    }
    fclose(file);
    if (result != VP_OK) {
        free(data);
        return result;
    }
    data[used] = 0;
    *text = data;
    *bytes = used;
    return VP_OK;
}

#ifdef __cplusplus
}
#endif
#endif /* implementation */
