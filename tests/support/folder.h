/* folder.h: the temporary folder of a test program; everything that it writes lies there. Include it after check.h; define _POSIX_C_SOURCE
 * 200809L (mkdtemp) before the first header. */
#ifndef FOLDER_H
#define FOLDER_H
#include <dirent.h>
#include <unistd.h>

static char folder[256];

/* Makes it, in $TMPDIR or /tmp; 0 after a message when that fails. */
static inline int folder_make(const char *name) {
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/vlmprof-%s-XXXXXX", base && strlen(base) < 200 ? base : "/tmp", name);
    /* outputs do not depend on what else this machine does; programs with hooks do not measure for tenths of a second what it can */
    if (mkdtemp(folder)) return setenv("VLMPROF_TEST_SYSTEM", folder, 0) == 0 && setenv("VLMPROF_TEST_CEILINGS", "1e11 1e12", 0) == 0;
    perror(folder);
    return 0;
}
/* a program in the build's folder: "tests/vlmprof-hooks", "tests/vlmprof-clock", "emulated/vlmprof" */
static inline const char *built(const char *name) {
    static char paths[4][300];
    static int turn;
    char *p = paths[turn++ & 3];
    snprintf(p, sizeof paths[0], "%s/%s", getenv("B") ? getenv("B") : "build", name);
    return p;
}
/* a path inside it, good until eight more were asked for */
static inline char *in_folder(const char *name) {
    static char paths[8][600];
    static int turn;
    char *p = paths[turn++ & 7];
    snprintf(p, sizeof paths[0], "%s/%s", folder, name);
    return p;
}
/* how many files in the folder are still being written, or were left so (vp_output's temporary names) */
static inline int unfinished_files(void) {
    DIR *d = opendir(folder);
    struct dirent *e;
    int count = 0;
    while (d && (e = readdir(d)) != NULL) count += strncmp(e->d_name, ".vlmprof-writing-", 17) == 0;
    if (d) closedir(d);
    return count;
}
static inline void write_file(const char *path, const void *data, size_t bytes) {
    FILE *f = fopen(path, "wb");
    int good = f && fwrite(data, 1, bytes, f) == bytes;
    if (f) good &= fclose(f) == 0;
    check_note(good, __FILE__, __LINE__, "%s cannot be written", path);
}
static inline void write_text(const char *path, const char *text) { write_file(path, text, strlen(text)); }
/* a folder with all that is in it, or one file */
static inline void remove_folder(const char *path) {
    DIR *d = opendir(path);
    struct dirent *e;
    char name[1024];
    while (d && (e = readdir(d)) != NULL) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (snprintf(name, sizeof name, "%s/%s", path, e->d_name) < (int)sizeof name && unlink(name)) remove_folder(name);
    }
    if (d) closedir(d);
    rmdir(path);
}
static inline void make_empty(const char *path) {
    remove_folder(path);
    check_note(mkdir(path, 0777) == 0, __FILE__, __LINE__, "%s cannot be made", path);
}
#endif
