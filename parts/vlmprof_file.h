/* vlmprof_file.h - v0.2.0 - whole files: read into memory, written safely, errors with their reason - MIT licence
 *
 * Reads files whole, writes files so that a reader never sees half of one, and says why something failed. It uses POSIX
 * calls, stdio and malloc.
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

/* Reads a whole regular file into memory from malloc, followed by a NUL that is not counted.
 * in:      limit_bytes  a longer file is VP_ERR_RANGE
 * out:     text, bytes  on success only; release text with free
 * returns: VP_OK; VP_ERR_NOT_FOUND; VP_ERR_READ (a folder, a pipe, a device, no permission, a read error);
 *          VP_ERR_RANGE; VP_ERR_MEMORY
 * rule:    never waits for a writer: a pipe, a socket or a device is refused unread
 * threads: reentrant */
VP_API vp_result vp_file_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, vp_error *error);
/* The same, but pipes, sockets and devices are read to their end too. It can wait for ever; a signal whose handler was
 * installed without SA_RESTART ends the wait with VP_ERR_READ. */
VP_API vp_result vp_stream_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, vp_error *error);

/* Opens a regular file to read. *fd is the caller's, and is closed when the caller executes another program.
 * returns: as vp_file_read */
VP_API vp_result vp_file_open(const char *path, int *fd, vp_error *error);

/* A file that is being written. It gets its name when it is whole and on the disk: until then, and after any failure,
 * the old file stands.
 * rule:    What `path` names decides how it is written.
 *            nothing, or a regular file  a temporary file in the same folder, then fsync and rename; the permissions
 *                                        (and for root the owner) of a replaced file are kept
 *            a symbolic link             what it leads to is written by these rules; the link stays
 *            a pipe, socket or device    written as it is, from vp_output_open on
 *            /dev/stdout, /dev/fd/N      the open file itself, from its position on
 *            a folder                    refused
 *          Temporary names begin with VP_OUTPUT_PREFIX and are made with O_EXCL. The writer holds a lock on its
 *          temporary file, so that vp_output_clean knows those of dead writers. */
#define VP_OUTPUT_PREFIX ".vlmprof-writing-"
typedef struct vp_output {
    int fd;          /* open for writing, for callers that write or seek by themselves; -1: not open */
    char *path;      /* what is written, links followed */
    char *temporary; /* NULL: the file is written as it is */
    int mode;        /* permissions of the file that is replaced; -1: there was none */
} vp_output;
/* out:     output  on success only; then vp_output_commit or vp_output_discard ends it
 * returns: VP_OK; VP_ERR_WRITE with the system's reason; VP_ERR_MEMORY
 * threads: reentrant */
VP_API vp_result vp_output_open(const char *path, vp_output *output, vp_error *error);
/* Writes all bytes at the file's position.
 * returns: VP_OK; VP_ERR_WRITE, with errno set */
VP_API vp_result vp_output_write(vp_output *output, const void *data, size_t bytes, vp_error *error);
/* Syncs the file and gives it its name. The output is closed in any case; after a failure the old file stands.
 * returns: VP_OK; VP_ERR_WRITE, with errno set */
VP_API vp_result vp_output_commit(vp_output *output, vp_error *error);
/* Closes the output and removes the temporary file. Nothing happens when the output is not open. errno stays. */
VP_API void vp_output_discard(vp_output *output);
/* Opens, writes and commits in one call. */
VP_API vp_result vp_file_write(const char *path, const void *data, size_t bytes, vp_error *error);
/* Writes a folder's entries to the disk, so that new names survive a crash.
 * returns: 0, also where the file system cannot do it; otherwise an errno value */
VP_API int vp_folder_sync(const char *folder);
/* Removes the temporary files that killed writers left in a folder; those of living writers stay. */
VP_API void vp_output_clean(const char *folder);

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
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#if !defined(O_CLOEXEC) && !defined(__cplusplus)
/* strict ISO C, and a system header came before this one: POSIX is hidden, but the C library has it. A program that
 * starts others then has to close its files itself. */
extern int lstat(const char *path, struct stat *info);
extern ssize_t readlink(const char *path, char *text, size_t bytes);
extern int fchmod(int fd, mode_t mode);
extern int fchown(int fd, uid_t owner, gid_t group);
extern FILE *fdopen(int fd, const char *mode);
#define O_CLOEXEC 0
#define F_DUPFD_CLOEXEC F_DUPFD
#endif
#ifndef O_NOFOLLOW
#define O_NOFOLLOW 0 /* in the same case; what is opened is looked at by lstat before */
#endif
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

static vp_result vp_impl_file_open(const char *path, int streams, struct stat *info, int *out, vp_error *error) {
    int fd;
    if (stat(path, info) != 0) return vp_file_failed(path, error);
    if (S_ISDIR(info->st_mode)) return vp_fail(error, VP_ERR_READ, -1, path, "this is a folder, not a file");
    if (!streams && !S_ISREG(info->st_mode))
        return vp_fail(error, VP_ERR_READ, -1, path, "this is not a regular file");
    fd = open(path, O_RDONLY | O_CLOEXEC | (streams ? 0 : O_NONBLOCK)); /* the name may lead elsewhere by now */
    if (fd < 0) return vp_file_failed(path, error);
    if (fstat(fd, info) != 0 || (!streams && !S_ISREG(info->st_mode))) {
        close(fd);
        return vp_fail(error, VP_ERR_READ, -1, path, "this is not a regular file");
    }
    *out = fd;
    return VP_OK;
}
VP_API vp_result vp_file_open(const char *path, int *fd, vp_error *error) {
    struct stat info;
    if (!path || !fd) return vp_fail(error, VP_ERR_RANGE, -1, "vp_file_open", "a required pointer is NULL");
    return vp_impl_file_open(path, 0, &info, fd, error);
}
static vp_result vp_impl_file_read(const char *path, int streams, size_t limit_bytes, char **text, size_t *bytes,
                                   vp_error *error) {
    struct stat info;
    FILE *file;
    char *data = NULL;
    int fd = -1;
    size_t used = 0, capacity = 65536;
    vp_result result = VP_OK;
    if (!path || !text || !bytes) return vp_fail(error, VP_ERR_RANGE, -1, "vp_file_read", "a required pointer is NULL");
    result = vp_impl_file_open(path, streams, &info, &fd, error);
    if (result != VP_OK) return result;
    file = fdopen(fd, "rb");
    if (!file) {
        close(fd);
        return vp_fail(error, VP_ERR_MEMORY, -1, path, "not enough memory to open the file");
    }
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
            result = vp_failf(error, VP_ERR_READ, (int64_t)used, path, "reading the file failed: %s", strerror(errno));
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
VP_API vp_result vp_file_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, vp_error *error) {
    return vp_impl_file_read(path, 0, limit_bytes, text, bytes, error);
}
VP_API vp_result vp_stream_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, vp_error *error) {
    return vp_impl_file_read(path, 1, limit_bytes, text, bytes, error);
}

/* ---- output ---- */
enum { VP_IMPL_LINKS_MAX = 40 }; /* as Linux follows */

static vp_result vp_impl_output_failed(const char *path, int code, vp_error *error) {
    return vp_failf(error, code == ENOMEM ? VP_ERR_MEMORY : VP_ERR_WRITE, -1, path, "it cannot be written: %s",
                    code == EISDIR ? "this is a folder" : strerror(code));
}
/* The bytes of a path up to its last slash, the slash included. */
static size_t vp_impl_folder_bytes(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}
static char *vp_impl_path_beside(const char *path, const char *name, size_t name_bytes) {
    size_t folder = vp_impl_folder_bytes(path);
    char *out = (char *)malloc(folder + name_bytes + 1);
    if (!out) return NULL;
    memcpy(out, path, folder);
    memcpy(out + folder, name, name_bytes);
    out[folder + name_bytes] = 0;
    return out;
}
/* The number behind /dev/fd/ and its like: a file that this program has open; -1 for other paths. */
static int vp_impl_own_fd(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    size_t i;
    for (i = 0; i < 3; i++)
        if (strcmp(path, names[i]) == 0) return (int)i;
    for (i = 0; i < 2; i++) {
        size_t bytes = strlen(folders[i]), digits;
        if (strncmp(path, folders[i], bytes) != 0) continue;
        digits = strspn(path + bytes, "0123456789");
        if (digits && digits < 7 && !path[bytes + digits]) return atoi(path + bytes);
    }
    return -1;
}
/* Follows links, up to the first path that is none or that names an open file. Returns it from malloc; NULL with errno
 * set. */
static char *vp_impl_follow(const char *path) {
    char *at = vp_impl_path_beside(path, path + vp_impl_folder_bytes(path), strlen(path) - vp_impl_folder_bytes(path));
    int links;
    for (links = 0; at; links++) {
        struct stat info;
        char link[4096], *next;
        ssize_t bytes;
        if (vp_impl_own_fd(at) >= 0 || lstat(at, &info) != 0 || !S_ISLNK(info.st_mode)) return at;
        bytes = links < VP_IMPL_LINKS_MAX ? readlink(at, link, sizeof link) : -1;
        if (links == VP_IMPL_LINKS_MAX) errno = ELOOP;
        if (bytes == (ssize_t)sizeof link) errno = ENAMETOOLONG;
        if (bytes <= 0 || bytes == (ssize_t)sizeof link) break;
        next = vp_impl_path_beside(link[0] == '/' ? "" : at, link, (size_t)bytes);
        free(at);
        at = next;
    }
    if (!at) errno = ENOMEM;
    else {
        int code = errno;
        free(at);
        errno = code;
    }
    return NULL;
}
/* Makes the temporary file and locks it. Returns 0 or an errno value. */
static int vp_impl_output_begin(vp_output *output) {
    uint64_t salt = (uint64_t)vp_clock_ns() ^ (uint64_t)getpid() << 40;
    int tries;
    for (tries = 0; tries < 100; tries++) {
        char name[64];
        struct stat info;
        salt = salt * 6364136223846793005u + 1442695040888963407u;
        snprintf(name, sizeof name, VP_OUTPUT_PREFIX "%016llx", (unsigned long long)salt);
        output->temporary = vp_impl_path_beside(output->path, name, strlen(name));
        if (!output->temporary) return ENOMEM;
        output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (output->fd < 0 && errno != EEXIST) {
            int code = errno;
            free(output->temporary);
            output->temporary = NULL;
            return code;
        }
        if (output->fd >= 0) {
            /* a file system without locks has none to ask for either; a cleaner may have been quicker than the lock */
            (void)flock(output->fd, LOCK_EX | LOCK_NB);
            if (fstat(output->fd, &info) == 0 && info.st_nlink > 0) return 0;
            close(output->fd);
            output->fd = -1;
        }
        free(output->temporary);
        output->temporary = NULL;
    }
    return EEXIST;
}
/* Opens what output->path names. Returns 0 or an errno value. */
static int vp_impl_output_start(vp_output *output) {
    struct stat info;
    int own = vp_impl_own_fd(output->path), code;
    if (own >= 0) {
        output->fd = fcntl(own, F_DUPFD_CLOEXEC, 0);
        return output->fd < 0 ? errno : 0;
    }
    if (stat(output->path, &info) != 0) {
        if (errno != ENOENT) return errno;
        return vp_impl_output_begin(output);
    }
    if (S_ISDIR(info.st_mode)) return EISDIR;
    if (!S_ISREG(info.st_mode)) {
        output->fd = open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return output->fd < 0 ? errno : 0;
    }
    if (access(output->path, W_OK) != 0) return errno; /* rename would replace a file that its owner protects */
    output->mode = (int)(info.st_mode & 0777);
    code = vp_impl_output_begin(output);
    if (code == 0 && geteuid() == 0 && fchown(output->fd, info.st_uid, info.st_gid) != 0) code = errno;
    return code;
}
VP_API vp_result vp_output_open(const char *path, vp_output *output, vp_error *error) {
    vp_output made = {-1, NULL, NULL, -1};
    int code;
    if (!path || !output) return vp_fail(error, VP_ERR_RANGE, -1, "vp_output_open", "a required pointer is NULL");
    made.path = *path ? vp_impl_follow(path) : NULL;
    code = made.path ? vp_impl_output_start(&made) : *path ? errno : ENOENT;
    if (code != 0) {
        vp_output_discard(&made);
        return vp_impl_output_failed(path, code, error);
    }
    *output = made;
    return VP_OK;
}
VP_API vp_result vp_output_write(vp_output *output, const void *data, size_t bytes, vp_error *error) {
    const char *at = (const char *)data;
    while (bytes > 0) {
        ssize_t now = write(output->fd, at, bytes < (1u << 30) ? bytes : (1u << 30));
        if (now <= 0) {
            int code = now < 0 ? errno : ENOSPC;
            vp_impl_output_failed(output->path, code, error);
            errno = code;
            return VP_ERR_WRITE;
        }
        at += now;
        bytes -= (size_t)now;
    }
    return VP_OK;
}
VP_API int vp_folder_sync(const char *folder) {
    int fd = open(folder, O_RDONLY | O_CLOEXEC), code = fd < 0 ? errno : 0;
    if (fd >= 0 && fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) code = errno;
    if (fd >= 0) close(fd);
    return code;
}
static int vp_impl_sync_folder_of(const char *path) {
    char *folder = vp_impl_path_beside(path, ".", 1);
    int code = folder ? vp_folder_sync(folder) : ENOMEM;
    free(folder);
    return code == EACCES ? 0 : code; /* a folder that may be written but not read */
}
VP_API vp_result vp_output_commit(vp_output *output, vp_error *error) {
    int code = 0;
    vp_result result;
    /* the bytes must be on the disk before the file gets its name; some file systems have no fsync, nor has a pipe */
    if (output->temporary && fsync(output->fd) != 0 && errno != EINVAL && errno != ENOTSUP) code = errno;
    if (code == 0 && output->mode >= 0 && fchmod(output->fd, (mode_t)output->mode) != 0) code = errno;
    if (code == 0 && output->temporary) {
        if (rename(output->temporary, output->path) != 0) code = errno;
        else {
            free(output->temporary);
            output->temporary = NULL;
            code = vp_impl_sync_folder_of(output->path);
        }
    }
    if (close(output->fd) != 0 && code == 0) code = errno; /* only now: it releases the lock */
    output->fd = -1;
    result = code ? vp_impl_output_failed(output->path, code, error) : VP_OK;
    vp_output_discard(output);
    if (code) errno = code;
    return result;
}
VP_API void vp_output_discard(vp_output *output) {
    int code = errno;
    if (output->temporary) unlink(output->temporary);
    if (output->fd >= 0) close(output->fd);
    free(output->temporary);
    free(output->path);
    output->fd = -1;
    output->temporary = output->path = NULL;
    errno = code;
}
VP_API vp_result vp_file_write(const char *path, const void *data, size_t bytes, vp_error *error) {
    vp_output output;
    vp_result result = vp_output_open(path, &output, error);
    if (result != VP_OK) return result;
    result = vp_output_write(&output, data, bytes, error);
    if (result == VP_OK) return vp_output_commit(&output, error);
    vp_output_discard(&output);
    return result;
}
VP_API void vp_output_clean(const char *folder) {
    DIR *listing = opendir(folder);
    struct dirent *entry;
    while (listing && (entry = readdir(listing)) != NULL) {
        char path[4096];
        struct stat info;
        int fd;
        if (strncmp(entry->d_name, VP_OUTPUT_PREFIX, sizeof VP_OUTPUT_PREFIX - 1) != 0) continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= sizeof path) continue;
        if (lstat(path, &info) != 0 || !S_ISREG(info.st_mode)) continue;
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(path);
        close(fd);
    }
    if (listing) closedir(listing);
}

#ifdef __cplusplus
}
#endif
#endif /* implementation */
