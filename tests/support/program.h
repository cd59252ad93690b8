/* program.h: runs $PROGRAM (default: the one with hooks for tests) through the shell, with its output in the test's folder and in `last`. */
#ifndef PROGRAM_H
#define PROGRAM_H
#include "folder.h"
#include <sys/wait.h>

static const char *program;
static struct { int code; char *out, *err; } last; /* code -1: killed by a signal */

static inline int program_begin(const char *name) {
    program = getenv("PROGRAM") ? getenv("PROGRAM") : strdup(built("tests/vlmprof-hooks"));
    return folder_make(name);
}
static inline void program_end(void) {
    remove_folder(folder);
    FREE_ALL(last.out, last.err);
}
static inline int program_done(const char *name) { program_end(); return check_done(name); }
/* what is in a file, "" when there is none; malloc'ed */
static inline char *text_of_file(const char *path) {
    char *text = check_read(path, NULL);
    return text ? text : (char *)calloc(1, 1);
}
/* Runs a command line. %F in it, written %%F in the format, is the test's folder, $TEST_FOLDER, which may contain blanks. Returns the exit code. */
static inline int run(const char *format, ...) {
    char command[2048], line[4096];
    int status, quoted = 0;
    va_list list;
    va_start(list, format);
    vsnprintf(command, sizeof command, format, list);
    va_end(list);
    size_t used = (size_t)snprintf(line, sizeof line, "</dev/null %s ", program); /* first: the line may name another input */
    for (const char *p = command; *p && used < sizeof line - 100; p++) {
        quoted ^= *p == '"';
        if (p[0] == '%' && p[1] == 'F') { used += (size_t)snprintf(line + used, sizeof line - used, quoted ? "$TEST_FOLDER" : "\"$TEST_FOLDER\""); p++; }
        else line[used++] = *p;
    }
    snprintf(line + used, sizeof line - used, " >\"$TEST_FOLDER/stdout\" 2>\"$TEST_FOLDER/stderr\"");
    status = system(line);
    FREE_ALL(last.out, last.err);
    last.out = text_of_file(in_folder("stdout"));
    last.err = text_of_file(in_folder("stderr"));
    last.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return last.code;
}
static inline int lines_of(const char *text) {
    int count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}
/* the exit code of a run, one line on stderr that contains `word`, nothing on stdout */
static inline void check_refused(int got, int code, const char *word) {
    CHECK_INT(got, code);
    CHECK_INT(lines_of(last.err), 1);
    CHECK_TEXT(last.out, "");
    check_note(strstr(last.err, word) != NULL, __FILE__, __LINE__, "\"%s\" is not in \"%s\"", word, last.err);
}
#endif
