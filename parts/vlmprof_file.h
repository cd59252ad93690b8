/* vlmprof_file.h - v0.2.0 - reads whole files, writes them safely, and reports why a call failed - MIT licence
 *
 * Do this:
 *     char *text = NULL;
 *     size_t bytes = 0;
 *     vp_error error = {VP_OK, -1, "", ""};
 *     if (vp_file_read("LICENSE", 1 << 20, &text, &bytes, &error) != VP_OK) printf("%s\n", error.text);
 *     else printf("%.11s\n", text);
 *     free(text);
 * It prints MIT License, the first words of the file, or the reason why the file cannot be read.
 *
 * Files are read or mapped whole. They are written so that a reader never sees half a file: with vp_file_write for a
 * text in memory, or with vp_output_open, vp_output_write and vp_output_commit in pieces. All system calls of the
 * companions are in this header, under ---- system, once for POSIX and once for Windows (MinGW-w64). The rest uses
 * stdio and malloc. On Windows, paths are in the program's code page.
 *
 * Includes vlmprof.h if needed.
 * In one file, define VLMPROF_IMPLEMENTATION for all headers of vlmprof that it includes, or
 * VLMPROF_FILE_IMPLEMENTATION for only this one. The manual is in vlmprof.h. */
#ifndef VLMPROF_FILE_H
#define VLMPROF_FILE_H
/* strict ISO mode hides POSIX unless it is requested before the first system header */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_FILE_IMPLEMENTATION)) && !defined(_DEFAULT_SOURCE) \
    && !defined(_GNU_SOURCE) && !defined(_POSIX_C_SOURCE)
#define _DEFAULT_SOURCE 1
#endif
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif

VP_EXTERN_C_BEGIN

/* Reads a whole regular file into malloc'ed memory and appends a NUL that `bytes` does not count.
 * in:      limit_bytes  largest allowed size
 * out:     text, bytes  on success only; release text with free
 * returns: VP_OK; VP_ERR_NOT_FOUND; VP_ERR_READ (a folder, a pipe, a device, no permission, a read error); VP_ERR_RANGE
 *          (over the limit); VP_ERR_MEMORY
 * rule:    never waits for a writer: pipes, sockets and devices are rejected without being read
 * threads: reentrant */
VP_API vp_result vp_file_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, vp_error *error);
/* The same, but also reads pipes, sockets and devices to their end. It can wait forever; a signal whose handler was
 * installed without SA_RESTART ends the wait with VP_ERR_READ. */
VP_API vp_result vp_stream_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, vp_error *error);

/* Opens a regular file for reading. The caller closes *fd; exec closes it too.
 * returns: as vp_file_read */
VP_API vp_result vp_file_open(const char *path, int *fd, vp_error *error);

/* Maps a whole regular file for reading; pages are read on first use.
 * out:     data, bytes  on success only; data is NULL for an empty file; release with vp_file_unmap
 * returns: as vp_file_read
 * rule:    if another program truncates the file, accessing the lost pages kills this program */
VP_API vp_result vp_file_map(const char *path, const unsigned char **data, size_t *bytes, vp_error *error);
VP_API void vp_file_unmap(const unsigned char *data, size_t bytes);
/* A hint that bytes begin..end of mapped data will be needed soon, or no longer. It has no effect on Windows. */
VP_API void vp_file_advise(const unsigned char *data, size_t begin, size_t end, int needed);

/* The kind of object at a path; links are followed. VP_PATH_OTHER: a pipe, a socket or a device. VP_PATH_UNKNOWN: the
 * system does not report it, for instance inside a folder without permission. */
typedef enum vp_path { VP_PATH_NONE, VP_PATH_FILE, VP_PATH_FOLDER, VP_PATH_OTHER, VP_PATH_UNKNOWN } vp_path;
VP_API vp_path vp_path_kind(const char *path);

/* The host name of this machine, truncated to the capacity; "" if it has none. */
VP_API void vp_host_name(char *name, size_t capacity);
VP_API int64_t vp_process_id(void);
/* Nanoseconds since 1970-01-01 00:00 UTC; 0 if the system does not know. */
VP_API int64_t vp_unix_ns(void);

/* A file that is being written. It gets its name when it is complete and on disk. Until then, and after any failure,
 * the old file remains.
 * rule:    the object at `path` decides how it is written.
 *            nothing, or a regular file  a temporary file in the same folder, then fsync and rename; permissions (and
 *                                        for root the owner) of a replaced file are kept
 *            a symbolic link             its target is written by these rules; the link stays
 *            a pipe, socket or device    written directly, starting at vp_output_open
 *            /dev/stdout, /dev/fd/N      the open file itself is written, starting at its position
 *            a folder                    rejected
 *          Names of temporary files begin with VP_OUTPUT_PREFIX; they are created with O_EXCL. The writer keeps its
 *          file locked, so that vp_output_clean can recognise files of dead writers. On Windows, links and names of
 *          open files are not handled, and the new file has the folder's permissions. Replacing a file that another
 *          program has open fails with VP_ERR_WRITE. */
#define VP_OUTPUT_PREFIX ".vlmprof-writing-"
typedef struct vp_output {
    int fd;          /* open for writing, for callers that write or seek directly; -1: not open */
    char *path;      /* the file that is written, after following links */
    char *temporary; /* NULL if the file is written directly */
    int mode;        /* permissions of the replaced file; -1 if there was none */
} vp_output;
/* out:     output  on success only; close it with vp_output_commit or vp_output_discard
 * returns: VP_OK; VP_ERR_WRITE with the system's reason; VP_ERR_MEMORY
 * threads: reentrant */
VP_API vp_result vp_output_open(const char *path, vp_output *output, vp_error *error);
/* Writes all bytes at the current file position.
 * returns: VP_OK; VP_ERR_WRITE, with errno set */
VP_API vp_result vp_output_write(vp_output *output, const void *data, size_t bytes, vp_error *error);
/* Syncs the file and renames it to its final name. The output is closed; after a failure, the old file remains.
 * returns: VP_OK; VP_ERR_WRITE, with errno set */
VP_API vp_result vp_output_commit(vp_output *output, vp_error *error);
/* Closes the output and removes the temporary file. Does nothing if the output is not open. errno is preserved. */
VP_API void vp_output_discard(vp_output *output);
/* Opens, writes and commits in one call. */
VP_API vp_result vp_file_write(const char *path, const void *data, size_t bytes, vp_error *error);
/* Syncs a folder to disk, so that new names survive a crash.
 * returns: 0, also if the file system cannot do it; otherwise an errno value */
VP_API int vp_folder_sync(const char *folder);
/* Removes the temporary files that killed writers left in a folder; files of running writers stay. */
VP_API void vp_output_clean(const char *folder);

/* Sets the error for a file that cannot be opened, from errno.
 * returns: VP_ERR_NOT_FOUND, VP_ERR_READ or VP_ERR_MEMORY, unchanged in error->code */
VP_API vp_result vp_file_failed(const char *path, vp_error *error);
/* vp_error_set with a printf format. */
VP_API vp_result vp_failf(vp_error *error, vp_result code, int64_t offset, const char *where, const char *format, ...);

VP_EXTERN_C_END
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
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#ifdef _WIN32
#include <io.h>
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#if !defined(O_CLOEXEC) && !defined(__cplusplus)
/* in strict ISO C, after another system header: the header hides POSIX, but the C library has it. O_CLOEXEC is then
 * missing, so a program that starts others must close its files itself. */
extern int lstat(const char *path, struct stat *info);
extern ssize_t readlink(const char *path, char *text, size_t bytes);
extern int fchmod(int fd, mode_t mode);
extern int fchown(int fd, uid_t owner, gid_t group);
extern FILE *fdopen(int fd, const char *mode);
#define O_CLOEXEC 0
#define F_DUPFD_CLOEXEC F_DUPFD
#endif
#ifndef O_NOFOLLOW
#define O_NOFOLLOW 0 /* in the same case; lstat checks the path before it is opened */
#endif
#endif /* _WIN32 */
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH

#ifdef _WIN32
#define VP_IMPL_SEPARATORS "/\\:"
#else
#define VP_IMPL_SEPARATORS "/"
#endif
/* Length in bytes of a path up to and including its last separator. */
static size_t vp_impl_folder_bytes(const char *path) {
    size_t bytes = strlen(path);
    while (bytes > 0 && !strchr(VP_IMPL_SEPARATORS, path[bytes - 1])) bytes--;
    return bytes;
}
static char *vp_impl_path_beside(const char *path, const char *name, size_t name_bytes) {
    size_t folder = vp_impl_folder_bytes(path);
    char *out = (char *)VP_MALLOC(folder + name_bytes + 1);
    if (!out) return NULL;
    memcpy(out, path, folder);
    memcpy(out + folder, name, name_bytes);
    out[folder + name_bytes] = 0;
    return out;
}
static int vp_impl_output_begin(vp_output *output);

#ifdef _WIN32
/* ---- system: Windows. An open file cannot be removed or replaced, so files of running writers need no lock. */
static int vp_impl_open_to_read(const char *path, int streams) {
    (void)streams;
    return _open(path, _O_RDONLY | _O_BINARY | _O_NOINHERIT);
}
static int64_t vp_impl_open_bytes(int fd) {
    struct _stat64 info;
    return _fstat64(fd, &info) == 0 && (info.st_mode & _S_IFMT) == _S_IFREG ? (int64_t)info.st_size : -1;
}
/* The errno for Windows' last error. */
static int vp_impl_windows_code(void) {
    const DWORD code = GetLastError();
    if (code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND || code == ERROR_INVALID_NAME) return ENOENT;
    if (code == ERROR_ACCESS_DENIED || code == ERROR_SHARING_VIOLATION) return EACCES;
    return code == ERROR_NOT_ENOUGH_MEMORY ? ENOMEM : code == ERROR_DISK_FULL ? ENOSPC : EIO;
}
VP_API vp_path vp_path_kind(const char *path) {
    BY_HANDLE_FILE_INFORMATION info;
    vp_path kind = VP_PATH_OTHER;
    HANDLE file = CreateFileA(path, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                              FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) {
        errno = vp_impl_windows_code();
        return errno == ENOENT ? VP_PATH_NONE : VP_PATH_UNKNOWN;
    }
    if (GetFileType(file) == FILE_TYPE_DISK && GetFileInformationByHandle(file, &info))
        kind = info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? VP_PATH_FOLDER : VP_PATH_FILE;
    CloseHandle(file);
    return kind;
}
static const unsigned char *vp_impl_map(int fd, size_t bytes) {
    HANDLE mapping = CreateFileMappingA((HANDLE)_get_osfhandle(fd), NULL, PAGE_READONLY, 0, 0, NULL);
    void *map = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, bytes) : NULL;
    if (!map) errno = vp_impl_windows_code();
    if (mapping) CloseHandle(mapping); /* the view keeps the mapping alive */
    return (const unsigned char *)map;
}
VP_API void vp_file_unmap(const unsigned char *data, size_t bytes) {
    (void)bytes;
    if (data) UnmapViewOfFile(data);
}
VP_API void vp_file_advise(const unsigned char *data, size_t begin, size_t end, int needed) {
    (void)data; (void)begin; (void)end; (void)needed;
}
VP_API void vp_host_name(char *name, size_t capacity) {
    char host[MAX_COMPUTERNAME_LENGTH + 1];
    DWORD bytes = sizeof host;
    if (capacity) snprintf(name, capacity, "%s", GetComputerNameA(host, &bytes) ? host : "");
}
VP_API int64_t vp_process_id(void) { return (int64_t)GetCurrentProcessId(); }
VP_API int64_t vp_unix_ns(void) {
    FILETIME now; /* in units of 100 ns since 1601-01-01 */
    GetSystemTimeAsFileTime(&now);
    return (((int64_t)now.dwHighDateTime << 32 | (int64_t)now.dwLowDateTime) - 116444736000000000) * 100;
}

static char *vp_impl_follow(const char *path) {
    char *copy = vp_impl_path_beside("", path, strlen(path));
    if (!copy) errno = ENOMEM;
    return copy;
}
static int vp_impl_create(const char *path) {
    return _open(path, _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT, _S_IREAD | _S_IWRITE);
}
static int vp_impl_output_start(vp_output *output) {
    switch (vp_path_kind(output->path)) {
    case VP_PATH_FOLDER: return EISDIR;
    case VP_PATH_UNKNOWN: return errno;
    case VP_PATH_OTHER:
        output->fd = _open(output->path, _O_WRONLY | _O_BINARY | _O_NOINHERIT);
        return output->fd < 0 ? errno : 0;
    case VP_PATH_FILE:
        if (_access(output->path, 2) != 0) return errno; /* read-only */
        break;
    case VP_PATH_NONE: break;
    }
    return vp_impl_output_begin(output);
}
VP_API int vp_folder_sync(const char *folder) {
    (void)folder; /* Windows has no call for it: vp_output_commit writes each new name through */
    return 0;
}
static int vp_impl_output_end(vp_output *output) {
    int code = output->temporary && _commit(output->fd) != 0 ? errno : 0;
    if (_close(output->fd) != 0 && code == 0) code = errno; /* an open file cannot be renamed */
    output->fd = -1;
    if (code != 0 || !output->temporary) return code;
    if (!MoveFileExA(output->temporary, output->path, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
        return vp_impl_windows_code();
    VP_FREE(output->temporary);
    output->temporary = NULL;
    return 0;
}
static void vp_impl_remove_dead(const char *path) { _unlink(path); }
#else
/* ---- system: POSIX ---- */
static int vp_impl_open_to_read(const char *path, int streams) {
    return open(path, O_RDONLY | O_CLOEXEC | (streams ? 0 : O_NONBLOCK));
}
/* Size in bytes of an open regular file; -1 if it is not a regular file. */
static int64_t vp_impl_open_bytes(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1;
}
VP_API vp_path vp_path_kind(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) return errno == ENOENT || errno == ENOTDIR ? VP_PATH_NONE : VP_PATH_UNKNOWN;
    return S_ISREG(info.st_mode) ? VP_PATH_FILE : S_ISDIR(info.st_mode) ? VP_PATH_FOLDER : VP_PATH_OTHER;
}
/* Returns NULL with errno set. */
static const unsigned char *vp_impl_map(int fd, size_t bytes) {
    void *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    return map == MAP_FAILED ? NULL : (const unsigned char *)map;
}
VP_API void vp_file_unmap(const unsigned char *data, size_t bytes) {
    if (data) munmap((void *)(uintptr_t)data, bytes);
}
VP_API void vp_file_advise(const unsigned char *data, size_t begin, size_t end, int needed) {
#ifdef MADV_DONTNEED /* hidden if the includer requested strict POSIX; posix_madvise has no effect */
    begin -= begin % (size_t)sysconf(_SC_PAGESIZE);
    madvise((void *)(uintptr_t)(data + begin), end - begin, needed ? MADV_WILLNEED : MADV_DONTNEED);
#else
    (void)data; (void)begin; (void)end; (void)needed;
#endif
}
VP_API void vp_host_name(char *name, size_t capacity) {
    struct utsname host;
    if (capacity) snprintf(name, capacity, "%s", uname(&host) == 0 ? host.nodename : "");
}
VP_API int64_t vp_process_id(void) { return (int64_t)getpid(); }
VP_API int64_t vp_unix_ns(void) {
    struct timespec now;
    return timespec_get(&now, TIME_UTC) == TIME_UTC ? (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec : 0;
}

/* The number in /dev/fd/N and similar paths, which name an open file of this program; -1 for other paths. */
static int vp_impl_own_fd(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    for (size_t i = 0; i < 3; i++)
        if (strcmp(path, names[i]) == 0) return (int)i;
    for (size_t i = 0; i < 2; i++) {
        size_t bytes = strlen(folders[i]), digits;
        if (strncmp(path, folders[i], bytes) != 0) continue;
        digits = strspn(path + bytes, "0123456789");
        if (digits && digits < 7 && !path[bytes + digits]) return atoi(path + bytes);
    }
    return -1;
}
enum { VP_IMPL_LINKS_MAX = 40 }; /* Linux's limit */
/* Follows links until a path is not a link or names an open file. Returns that path, malloc'ed, or NULL with errno
 * set. */
static char *vp_impl_follow(const char *path) {
    char *at = vp_impl_path_beside(path, path + vp_impl_folder_bytes(path), strlen(path) - vp_impl_folder_bytes(path));
    for (int links = 0; at; links++) {
        struct stat info;
        char link[4096], *next;
        if (vp_impl_own_fd(at) >= 0 || lstat(at, &info) != 0 || !S_ISLNK(info.st_mode)) return at;
        ssize_t bytes = links < VP_IMPL_LINKS_MAX ? readlink(at, link, sizeof link) : -1;
        if (links == VP_IMPL_LINKS_MAX) errno = ELOOP;
        if (bytes == (ssize_t)sizeof link) errno = ENAMETOOLONG;
        if (bytes <= 0 || bytes == (ssize_t)sizeof link) break;
        next = vp_impl_path_beside(link[0] == '/' ? "" : at, link, (size_t)bytes);
        VP_FREE(at);
        at = next;
    }
    if (!at) errno = ENOMEM;
    else {
        int code = errno;
        VP_FREE(at);
        errno = code;
    }
    return NULL;
}
/* Creates a new, locked file. Returns its descriptor, or -1 with errno set. */
static int vp_impl_create(const char *path) {
    struct stat info;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return -1;
    /* the lock may fail: then the file system has no locks, or a cleaner was faster */
    (void)flock(fd, LOCK_EX | LOCK_NB);
    if (fstat(fd, &info) == 0 && info.st_nlink > 0) return fd;
    close(fd);
    errno = EEXIST;
    return -1;
}
/* Opens output->path. Returns 0 or an errno value. */
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
    if (access(output->path, W_OK) != 0) return errno; /* rename would replace even a write-protected file */
    output->mode = (int)(info.st_mode & 0777);
    code = vp_impl_output_begin(output);
    if (code == 0 && geteuid() == 0 && fchown(output->fd, info.st_uid, info.st_gid) != 0) code = errno;
    return code;
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
    VP_FREE(folder);
    return code == EACCES ? 0 : code; /* the folder is writable but not readable */
}
/* Syncs the data before the file gets its name, and closes the output. Some file systems, and pipes, have no fsync.
 * Returns 0 or an errno value. */
static int vp_impl_output_end(vp_output *output) {
    int code = 0;
    if (output->temporary && fsync(output->fd) != 0 && errno != EINVAL && errno != ENOTSUP) code = errno;
    if (code == 0 && output->mode >= 0 && fchmod(output->fd, (mode_t)output->mode) != 0) code = errno;
    if (code == 0 && output->temporary) {
        if (rename(output->temporary, output->path) != 0) code = errno;
        else {
            VP_FREE(output->temporary);
            output->temporary = NULL;
            code = vp_impl_sync_folder_of(output->path);
        }
    }
    if (close(output->fd) != 0 && code == 0) code = errno; /* last, because it releases the lock */
    output->fd = -1;
    return code;
}
/* Removes a temporary file whose writer is dead. */
static void vp_impl_remove_dead(const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0 || !S_ISREG(info.st_mode)) return;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(path);
    close(fd);
}
#endif /* _WIN32 */

/* ---- errors ---- */
VP_API vp_result vp_failf(vp_error *error, vp_result code, int64_t offset, const char *where, const char *format, ...) {
    char text[sizeof error->text];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return vp_error_set(error, code, offset, where, text);
}

VP_API vp_result vp_file_failed(const char *path, vp_error *error) {
    int code = errno;
    if (code == ENOENT || code == ENOTDIR)
        return vp_error_set(error, VP_ERR_NOT_FOUND, -1, path,
                            code == ENOENT ? "there is no such file" : "a part of its path is not a folder");
    if (code == EACCES)
        return vp_error_set(error, VP_ERR_READ, -1, path, "the file cannot be read: permission denied");
    if (code == ENOMEM) return vp_error_set(error, VP_ERR_MEMORY, -1, path, "not enough memory to open the file");
    return vp_failf(error, VP_ERR_READ, -1, path, "the file cannot be opened: %s", strerror(code));
}

/* ---- whole files ---- */
static vp_result vp_impl_file_open(const char *path, int streams, int64_t *file_bytes, int *out, vp_error *error) {
    const vp_path kind = vp_path_kind(path);
    if (kind == VP_PATH_NONE || kind == VP_PATH_UNKNOWN) return vp_file_failed(path, error);
    if (kind == VP_PATH_FOLDER) return vp_error_set(error, VP_ERR_READ, -1, path, "it is a folder, not a file");
    if (!streams && kind != VP_PATH_FILE)
        return vp_error_set(error, VP_ERR_READ, -1, path, "this is not a regular file");
    int fd = vp_impl_open_to_read(path, streams); /* the path may have changed since */
    if (fd < 0) return vp_file_failed(path, error);
    *file_bytes = vp_impl_open_bytes(fd);
    if (!streams && *file_bytes < 0) {
        close(fd);
        return vp_error_set(error, VP_ERR_READ, -1, path, "this is not a regular file");
    }
    *out = fd;
    return VP_OK;
}
VP_API vp_result vp_file_open(const char *path, int *fd, vp_error *error) {
    int64_t bytes;
    if (!path || !fd) return vp_error_set(error, VP_ERR_RANGE, -1, "vp_file_open", "a required pointer is NULL");
    return vp_impl_file_open(path, 0, &bytes, fd, error);
}
VP_API vp_result vp_file_map(const char *path, const unsigned char **data, size_t *bytes, vp_error *error) {
    const unsigned char *map = NULL;
    int64_t file_bytes = 0;
    int fd = -1;
    if (!path || !data || !bytes)
        return vp_error_set(error, VP_ERR_RANGE, -1, "vp_file_map", "a required pointer is NULL");
    vp_result result = vp_impl_file_open(path, 0, &file_bytes, &fd, error);
    if (result != VP_OK) return result;
    if ((uint64_t)file_bytes > (uint64_t)SIZE_MAX)
        result = vp_error_set(error, VP_ERR_RANGE, -1, path, "the file is larger than this program's address space");
    else if (file_bytes > 0 && !(map = vp_impl_map(fd, (size_t)file_bytes)))
        result = vp_failf(error, errno == ENOMEM ? VP_ERR_MEMORY : VP_ERR_READ, -1, path,
                          "the file cannot be mapped: %s", strerror(errno));
    close(fd);
    if (result != VP_OK) return result;
    *data = map;
    *bytes = (size_t)file_bytes;
    return VP_OK;
}
static vp_result vp_impl_file_read(const char *path, int streams, size_t limit_bytes, char **text, size_t *bytes,
                                   vp_error *error) {
    int64_t file_bytes = -1;
    char *data = NULL;
    int fd = -1;
    size_t used = 0, capacity = 65536;
    if (!path || !text || !bytes)
        return vp_error_set(error, VP_ERR_RANGE, -1, "vp_file_read", "a required pointer is NULL");
    vp_result result = vp_impl_file_open(path, streams, &file_bytes, &fd, error);
    if (result != VP_OK) return result;
    FILE *file = fdopen(fd, "rb");
    if (!file) {
        close(fd);
        return vp_error_set(error, VP_ERR_MEMORY, -1, path, "not enough memory to open the file");
    }
    if (file_bytes >= 0 && (uint64_t)file_bytes < (uint64_t)(SIZE_MAX / 4)) capacity = (size_t)file_bytes + 2;
    /* the size is only a hint: a pipe has none, and a file may grow. Reading one byte beyond the limit detects that it
     * is exceeded. */
    if (limit_bytes > SIZE_MAX - 2) limit_bytes = SIZE_MAX - 2;
    if (capacity > limit_bytes + 2) capacity = limit_bytes + 2;
    for (;;) {
        char *grown = (char *)VP_REALLOC(data, capacity);
        if (!grown) {
            result = vp_error_set(error, VP_ERR_MEMORY, -1, path, "not enough memory for the file");
            break;
        }
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
        VP_FREE(data);
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
static vp_result vp_impl_output_failed(const char *path, int code, vp_error *error) {
    return vp_failf(error, code == ENOMEM ? VP_ERR_MEMORY : VP_ERR_WRITE, -1, path, "it cannot be written: %s",
                    code == EISDIR ? "it is a folder" : strerror(code));
}
/* Creates the temporary file. Returns 0 or an errno value. */
static int vp_impl_output_begin(vp_output *output) {
    uint64_t salt = (uint64_t)vp_clock_ns() ^ (uint64_t)vp_process_id() << 40;
    for (int tries = 0; tries < 100; tries++) {
        char name[64];
        salt = salt * 6364136223846793005u + 1442695040888963407u;
        snprintf(name, sizeof name, VP_OUTPUT_PREFIX "%016llx", (unsigned long long)salt);
        output->temporary = vp_impl_path_beside(output->path, name, strlen(name));
        if (!output->temporary) return ENOMEM;
        output->fd = vp_impl_create(output->temporary);
        if (output->fd >= 0) return 0;
        int code = errno;
        VP_FREE(output->temporary);
        output->temporary = NULL;
        if (code != EEXIST) return code;
    }
    return EEXIST;
}
VP_API vp_result vp_output_open(const char *path, vp_output *output, vp_error *error) {
    vp_output made = {-1, NULL, NULL, -1};
    if (!path || !output) return vp_error_set(error, VP_ERR_RANGE, -1, "vp_output_open", "a required pointer is NULL");
    made.path = *path ? vp_impl_follow(path) : NULL;
    int code = made.path ? vp_impl_output_start(&made) : *path ? errno : ENOENT;
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
        const unsigned piece = bytes < (1u << 30) ? (unsigned)bytes : 1u << 30;
        ssize_t now = write(output->fd, at, piece);
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
VP_API vp_result vp_output_commit(vp_output *output, vp_error *error) {
    const int code = vp_impl_output_end(output);
    vp_result result = code ? vp_impl_output_failed(output->path, code, error) : VP_OK;
    vp_output_discard(output);
    if (code) errno = code;
    return result;
}
VP_API void vp_output_discard(vp_output *output) {
    int code = errno;
    if (output->temporary) unlink(output->temporary);
    if (output->fd >= 0) close(output->fd);
    VP_FREE(output->temporary);
    VP_FREE(output->path);
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
        if (strncmp(entry->d_name, VP_OUTPUT_PREFIX, sizeof VP_OUTPUT_PREFIX - 1) != 0) continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < sizeof path)
            vp_impl_remove_dead(path);
    }
    if (listing) closedir(listing);
}

VP_EXACT_END
VP_EXTERN_C_END
#endif /* implementation */
