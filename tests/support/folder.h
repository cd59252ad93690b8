/* folder.h: the temporary folder of a test program, for all files that it writes. Include it after check.h; define _POSIX_C_SOURCE 200809L (mkdtemp) before the first
 * header. */
#ifndef FOLDER_H
#define FOLDER_H
#include "temporary.h"
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[256];

/* Makes it; returns 0 after a message if that fails. Shell commands find it in $TEST_FOLDER. Launchers of this machine are ignored. */
static inline int folder_make(const char *name) {
    static const char *const launchers[] = {"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_STEP_ID"};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) unsetenv(launchers[i]);
    return temporary_folder(name, folder, sizeof folder) && setenv("TEST_FOLDER", folder, 1) == 0
           && setenv("VLMPROF_TEST_SYSTEM", folder, 0) == 0             /* outputs do not depend on other load on this machine */
           && setenv("VLMPROF_TEST_CEILINGS", "1e11 1e12", 0) == 0; /* programs with hooks do not spend tenths of a second on measuring its limits */
}
/* a program in the build's folder: "tests/vlmprof-hooks", "tests/vlmprof-clock", "emulated/vlmprof" */
static inline const char *built(const char *name) {
    static char paths[4][300];
    static int turn;
    char *p = paths[turn++ & 3];
    snprintf(p, sizeof paths[0], "%s/%s", getenv("B") ? getenv("B") : "build", name);
    return p;
}
/* a path inside it, valid until eight more were requested */
static inline char *in_folder(const char *name) {
    static char paths[8][600];
    static int turn;
    char *p = paths[turn++ & 7];
    snprintf(p, sizeof paths[0], "%s/%s", folder, name);
    return p;
}
/* the number of files in the folder that are still being written, or were left unfinished (vp_output's temporary names) */
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
/* a file in the test's folder, whose name begins with a slash, and the folders that it needs */
static inline void put_file(const char *name, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "%s%s", folder, name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
    write_text(path, text);
}
/* Runs `work` in a child process in the test's folder and returns its result, 0 to 100. Its user is not root, because root may read and write every file. From then on
 * the folder belongs to that user. -1: no other user is available here. */
static inline int without_root(int (*work)(void)) {
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (chdir(folder) || (geteuid() == 0 && (chown(folder, 65534, 65534) || setgid(65534) || setuid(65534)))) _exit(101);
        _exit(work());
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) <= 100 ? WEXITSTATUS(status) : -1;
}
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
