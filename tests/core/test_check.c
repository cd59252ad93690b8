/* test_check.c: check.h itself. Each sample test program runs in its own process. Its exit status and output are compared here by strcmp alone, so that a bug in check.h
 * cannot hide itself. */
#define _POSIX_C_SOURCE 200809L
#include "support/check.h"
#include <sys/wait.h>
#include <unistd.h>

static void good(void) { check_case("one"); CHECK(1); CHECK_INT(2, 2); check_case("two"); CHECK_TEXT("a", "a"); CHECK_NEAR(1.0, 1.25, 0.25); }
static void two_failing_checks(void) { check_case("case %d", 7); CHECK_INT(3, 4); CHECK(0); check_case("next"); CHECK(1); }
static void before_a_case(void) { CHECK(1 > 2); check_case("one"); CHECK(1); }
static void before_and_no_case(void) { CHECK(1 > 2); }
static void after_a_skip(void) { check_skip("what", "reason"); CHECK(1 > 2); }
static void behind_a_case(void) { check_case("one"); CHECK(1); check_skip("what", "reason"); CHECK(1 > 2); check_case("two"); CHECK(1); }
static void passing_outside(void) { CHECK(1); check_case("one"); CHECK(1); }
static void empty(void) { check_case("one"); check_case("two"); CHECK(1); check_case("three"); }
static void begun_and_skipped(void) { check_case("one"); check_skip("what", "reason"); check_case("two"); CHECK(1); }
static void checked_and_skipped(void) { check_case("one"); CHECK(1); check_skip("the rest of one", "reason"); }
static void failed_and_skipped(void) { check_case("one"); CHECK(0); check_skip("the rest of one", "reason"); }
static void skipped_twice(void) { check_case("one"); check_skip("what", "reason"); check_skip("more", "reason"); }
static void nothing(void) { }
static void got_nan(void) { check_case("one"); CHECK_NEAR((double)NAN, 1.0, INFINITY); }
static void wanted_nan(void) { check_case("one"); CHECK_NEAR(1.0, (double)NAN, INFINITY); }
static void no_text(void) { check_case("one"); CHECK_TEXT(NULL, NULL); }

#define HERE "tests/core/test_check.c:"
static const struct program { const char *name; void (*run)(void); int status; const char *said; } programs[] = {
    {"good cases", good, 0, "p: 2 passed, 0 failed, 0 skipped\n"},
    {"two failing checks of a case are one failure", two_failing_checks, 1, "FAILED case 7: " HERE "N: 3 is 3, expected 4\np: 1 passed, 1 failed, 0 skipped\n"},
    {"a failing check before the first case", before_a_case, 1, "FAILED before the first case: " HERE "N: 1 > 2\np: 1 passed, 1 failed, 0 skipped\n"},
    {"a failing check and no case", before_and_no_case, 1, "FAILED before the first case: " HERE "N: 1 > 2\np: 0 passed, 1 failed, 0 skipped\n"},
    {"a failing check after a skip", after_a_skip, 1, "skipped: what: reason\nFAILED before the first case: " HERE "N: 1 > 2\np: 0 passed, 1 failed, 1 skipped\n"},
    {"a failing check between cases", behind_a_case, 1, "skipped: what: reason\nFAILED one: " HERE "N: 1 > 2\np: 2 passed, 1 failed, 1 skipped\n"},
    {"a passing check outside of cases is no case", passing_outside, 0, "p: 1 passed, 0 failed, 0 skipped\n"},
    {"cases without a check", empty, 1, "FAILED one: nothing was checked\nFAILED three: nothing was checked\np: 1 passed, 2 failed, 0 skipped\n"},
    {"a case that is begun and skipped is skipped", begun_and_skipped, 0, "skipped: what: reason\np: 1 passed, 0 failed, 1 skipped\n"},
    {"what a case checked before a skip counts", checked_and_skipped, 0, "skipped: the rest of one: reason\np: 1 passed, 0 failed, 1 skipped\n"},
    {"a skip does not hide a failure", failed_and_skipped, 1, "FAILED one: " HERE "N: 0\nskipped: the rest of one: reason\np: 0 passed, 1 failed, 1 skipped\n"},
    {"two skips", skipped_twice, 0, "skipped: what: reason\nskipped: more: reason\np: 0 passed, 0 failed, 2 skipped\n"},
    {"no case at all", nothing, 1, "FAILED p: no case\np: 0 passed, 1 failed, 0 skipped\n"},
    {"NaN is near nothing", got_nan, 1, NULL},
    {"nothing is near NaN", wanted_nan, 1, NULL},
    {"NULL is no text", no_text, 1, NULL}};

/* Copies a program's output with each line number as N, because lines of this file may move. */
static void read_said(int from, char *said, size_t capacity) {
    char text[2000];
    size_t bytes = 0, used = 0;
    ssize_t got;
    while (bytes + 1 < sizeof text && (got = read(from, text + bytes, sizeof text - 1 - bytes)) > 0) bytes += (size_t)got;
    text[bytes] = 0;
    for (const char *p = text; *p && used + 2 < capacity;) {
        said[used++] = *p++;
        if (used >= strlen(HERE) && !strncmp(said + used - strlen(HERE), HERE, strlen(HERE))) {
            said[used++] = 'N';
            p += strspn(p, "0123456789");
        }
    }
    said[used] = 0;
}
static int run(const struct program *program, char *said, size_t capacity) {
    int ends[2], status = -1;
    pid_t child;
    fflush(stdout);
    if (pipe(ends) || (child = fork()) < 0) return -1;
    if (!child) {
        dup2(ends[1], 1);
        program->run();
        status = check_done("p");
        fflush(stdout);
        _exit(status);
    }
    close(ends[1]);
    read_said(ends[0], said, capacity);
    close(ends[0]);
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
int main(void) {
    const int count = (int)(sizeof programs / sizeof *programs);
    int failed = 0;
    for (int i = 0; i < count; i++) {
        char said[2000];
        const int status = run(&programs[i], said, sizeof said);
        if (status == programs[i].status && (!programs[i].said || !strcmp(said, programs[i].said))) continue;
        printf("FAILED %s: exit status %d, it said: %s", programs[i].name, status, said);
        failed++;
    }
    printf("test_check: %d passed, %d failed, 0 skipped\n", count - failed, failed);
    return failed != 0;
}
