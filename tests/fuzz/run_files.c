/* run_files.c: a fuzzer without libFuzzer, as a test: corpus_NAME runs every file of tests/fuzz/corpus/NAME through the entry of fuzz_NAME.c, each
 * in a process of its own, so that a crash names its file. Linked with one fuzzer. */
#define _POSIX_C_SOURCE 200809L
#include "../support/check.h"
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int by_name(const void *a, const void *b) { return strcmp((const char *)a, (const char *)b); }

static void run_file(const char *path) {
    size_t bytes = 0;
    char *text = check_read(path, &bytes);
    int status = -1;
    check_case("%s", path);
    if (!CHECK(text != NULL)) return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char *exact = (char *)malloc(bytes ? bytes : 1); /* no NUL after it that hides a byte too far */
        alarm(60);
        if (bytes) memcpy(exact, text, bytes);
        LLVMFuzzerTestOneInput((const uint8_t *)exact, bytes);
        FREE_ALL(exact, text);
        exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    free(text);
}

int main(int argument_count, char **arguments) {
    static char names[1024][256];
    char folder[300], path[600];
    const char *name = strrchr(arguments[0], '/');
    struct dirent *entry;
    int count = 0, i;
    (void)argument_count;
    name = name ? name + 1 : arguments[0];
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", strncmp(name, "corpus_", 7) == 0 ? name + 7 : name);
    DIR *directory = opendir(folder);
    check_case("%s has files", folder);
    while (directory && (entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.' && count < 1024) snprintf(names[count++], sizeof names[0], "%s", entry->d_name);
    if (directory) closedir(directory);
    CHECK(count > 0 && count < 1024);
    qsort(names, (size_t)count, sizeof names[0], by_name);
    for (i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%.255s", folder, names[i]);
        run_file(path);
    }
    return check_done(name);
}
