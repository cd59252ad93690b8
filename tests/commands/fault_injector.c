/* fault_injector.c: a library that makes the n-th call of a kind fail. tests/commands/test_inject.c loads it into the program by LD_PRELOAD.
 * Environment:
 *   INJECT_FILE   a file of sizeof(struct injected) bytes, which is mapped: the counters stay readable whatever ends the program
 *   INJECT_KIND   index of the kind that fails; INJECT_AT the number of the call, from 1 on; 0: none fails, calls are only counted
 *   INJECT_TRACE  if set, stderr gets the call stack of the call that failed
 * Calls count from the first sigaction on: installing its signal handlers is the first thing that main does, so what the loader and the OpenMP runtime
 * do before main stays out. Calls that libc makes for its own purposes are seen where they go through its public names: malloc is, the open
 * of fopen is not, so the stdio functions that open and read are wrapped too. */
#define _GNU_SOURCE 1
#include "fault_injector.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct injected unmapped, *state = &unmapped;
static int kind_wanted = -1, tracing, counting;
static long at_wanted;
static _Thread_local int inside; /* the stack's printing may allocate */

/* The next definition of a function. dlsym may allocate when it is asked first, so `malloc` has a way around. */
#define REAL(name, result, parameters) \
    static result(*real) parameters; \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, name)

/* Counts a call. Returns 1 if it must fail. */
static int must_fail(int kind) {
    if (!counting || inside) return 0;
    long number = atomic_fetch_add(&state->calls[kind], 1) + 1;
    if (kind != kind_wanted || number != at_wanted) return 0;
    state->failed = 1;
    if (tracing) {
        void *stack[32];
        inside = 1;
        backtrace_symbols_fd(stack, backtrace(stack, 32), STDERR_FILENO);
        inside = 0;
    }
    return 1;
}

static void __attribute__((constructor)) prepare(void) {
    const char *path = getenv("INJECT_FILE"), *kind = getenv("INJECT_KIND"), *at = getenv("INJECT_AT");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *map = fd >= 0 ? mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED, *stack[1];
    if (fd >= 0) close(fd);
    if (map != MAP_FAILED) state = (struct injected *)map;
    if (kind) kind_wanted = atoi(kind);
    if (at) at_wanted = atol(at);
    tracing = getenv("INJECT_TRACE") != NULL;
    if (tracing) backtrace(stack, 1); /* loads what it needs now */
}

int sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    REAL("sigaction", int, (int, const struct sigaction *, struct sigaction *));
    counting = 1;
    return real(number, action, old);
}

/* ---- memory */
static char early[4096]; /* what dlsym asks for while malloc is looked up */
static size_t early_used;
static void *early_memory(size_t bytes) {
    void *memory = early + early_used;
    bytes = (bytes + 15) / 16 * 16;
    if (early_used + bytes > sizeof early) abort();
    early_used += bytes;
    return memory;
}
static void *no_memory(void) {
    errno = ENOMEM;
    return NULL;
}
void *malloc(size_t bytes) {
    static void *(*real)(size_t);
    static int looking;
    if (!real && looking) return early_memory(bytes);
    if (!real) {
        looking = 1;
        *(void **)&real = dlsym(RTLD_NEXT, "malloc");
    }
    return must_fail(INJECT_MEMORY) ? no_memory() : real(bytes);
}
void *calloc(size_t count, size_t bytes) {
    static void *(*real)(size_t, size_t);
    static int looking;
    if (!real && looking) return early_memory(count * bytes);
    if (!real) {
        looking = 1;
        *(void **)&real = dlsym(RTLD_NEXT, "calloc");
    }
    return must_fail(INJECT_MEMORY) ? no_memory() : real(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
    REAL("realloc", void *, (void *, size_t));
    return must_fail(INJECT_MEMORY) ? no_memory() : real(memory, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
    REAL("aligned_alloc", void *, (size_t, size_t));
    return must_fail(INJECT_MEMORY) ? no_memory() : real(alignment, bytes);
}
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    REAL("posix_memalign", int, (void **, size_t, size_t));
    return must_fail(INJECT_MEMORY) ? ENOMEM : real(memory, alignment, bytes);
}
void free(void *memory) {
    REAL("free", void, (void *));
    if ((char *)memory < early || (char *)memory >= early + sizeof early) real(memory);
}
void *mmap(void *place, size_t bytes, int protection, int flags, int fd, off_t offset) {
    REAL("mmap", void *, (void *, size_t, int, int, int, off_t));
    if (must_fail(INJECT_MAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return real(place, bytes, protection, flags, fd, offset);
}

/* ---- opening; what fails fails as a broken disk does */
static int must_fail_open(int flags) { return must_fail((flags & O_ACCMODE) == O_RDONLY ? INJECT_OPEN_INPUT : INJECT_OPEN_OUTPUT); }
static int broken(void) {
    errno = EIO;
    return -1;
}
static mode_t mode_of(int flags, va_list *list) { return flags & O_CREAT ? (mode_t)va_arg(*list, int) : 0; }
#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list list; \
        mode_t mode; \
        REAL(#name, int, (const char *, int, ...)); \
        va_start(list, flags); \
        mode = mode_of(flags, &list); \
        va_end(list); \
        return must_fail_open(flags) ? broken() : real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)
int openat(int folder, const char *path, int flags, ...) {
    va_list list;
    REAL("openat", int, (int, const char *, int, ...));
    va_start(list, flags);
    mode_t mode = mode_of(flags, &list);
    va_end(list);
    return must_fail_open(flags) ? broken() : real(folder, path, flags, mode);
}
FILE *fopen(const char *path, const char *mode) {
    REAL("fopen", FILE *, (const char *, const char *));
    if (!must_fail(*mode == 'r' ? INJECT_OPEN_INPUT : INJECT_OPEN_OUTPUT)) return real(path, mode);
    broken();
    return NULL;
}
DIR *opendir(const char *path) {
    REAL("opendir", DIR *, (const char *));
    if (!must_fail(INJECT_OPEN_INPUT)) return real(path);
    broken();
    return NULL;
}

/* ---- reading */
ssize_t read(int fd, void *data, size_t bytes) {
    REAL("read", ssize_t, (int, void *, size_t));
    return must_fail(INJECT_READ) ? broken() : real(fd, data, bytes);
}
ssize_t pread(int fd, void *data, size_t bytes, off_t offset) {
    REAL("pread", ssize_t, (int, void *, size_t, off_t));
    return must_fail(INJECT_READ) ? broken() : real(fd, data, bytes, offset);
}
struct dirent *readdir(DIR *folder) {
    REAL("readdir", struct dirent *, (DIR *));
    if (!must_fail(INJECT_READ)) return real(folder);
    broken();
    return NULL;
}
/* A stdio stream sees a read error when its descriptor leads, for one call, to a file whose first page cannot be read. */
static int break_stream(FILE *file) {
    int fd = fileno(file), kept = dup(fd), bad = open("/proc/self/mem", O_RDONLY);
    dup2(bad, fd);
    close(bad);
    return kept;
}
static void mend_stream(FILE *file, int kept) {
    int code = errno;
    dup2(kept, fileno(file));
    close(kept);
    errno = code;
}
size_t fread(void *data, size_t element_bytes, size_t count, FILE *file) {
    REAL("fread", size_t, (void *, size_t, size_t, FILE *));
    if (!must_fail(INJECT_READ)) return real(data, element_bytes, count, file);
    int kept = break_stream(file);
    size_t got = real(data, element_bytes, count, file);
    mend_stream(file, kept);
    return got;
}
ssize_t getdelim(char **text, size_t *capacity, int end, FILE *file) {
    REAL("getdelim", ssize_t, (char **, size_t *, int, FILE *));
    if (!must_fail(INJECT_READ)) return real(text, capacity, end, file);
    int kept = break_stream(file);
    ssize_t got = real(text, capacity, end, file);
    mend_stream(file, kept);
    return got;
}
ssize_t getline(char **text, size_t *capacity, FILE *file) { return getdelim(text, capacity, '\n', file); }

/* ---- writing */
static int full(void) {
    errno = ENOSPC;
    return -1;
}
ssize_t write(int fd, const void *data, size_t bytes) {
    REAL("write", ssize_t, (int, const void *, size_t));
    return must_fail(INJECT_WRITE) ? full() : real(fd, data, bytes);
}
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
    REAL("pwrite", ssize_t, (int, const void *, size_t, off_t));
    return must_fail(INJECT_WRITE) ? full() : real(fd, data, bytes, offset);
}
int ftruncate(int fd, off_t bytes) {
    REAL("ftruncate", int, (int, off_t));
    return must_fail(INJECT_WRITE) ? broken() : real(fd, bytes);
}
int mkdir(const char *path, mode_t mode) {
    REAL("mkdir", int, (const char *, mode_t));
    return must_fail(INJECT_OPEN_OUTPUT) ? full() : real(path, mode);
}
int fsync(int fd) { /* the disk is not asked: that takes most of the time, and what a test writes need not last */
    (void)fd;
    return must_fail(INJECT_SYNC) ? broken() : 0;
}
int rename(const char *from, const char *to) {
    REAL("rename", int, (const char *, const char *));
    return must_fail(INJECT_RENAME) ? broken() : real(from, to);
}
