/* check.h: the whole test framework. A test program includes it after vlmprof.h, calls CHECK macros inside named cases and ends with `return check_done("name");`, which
 * prints `name: N passed, N failed, N skipped` (tests/run.sh adds them up). A case counts as one. Its first failing check is printed with its place; further ones in that
 * case are only counted. A case without a check fails, and so does a program without a case. A failing check outside all cases is a failed case of its own. check_skip
 * ends the open case: it is skipped if it has checked nothing yet, else its checks count. */
#ifndef CHECK_H
#define CHECK_H
#include "../../cli/base/free_all.h" /* by its place: check_compile.sh compiles tests without -Icli */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static struct { int passed, failed, skipped, checks, case_failed, in_case; char name[256]; } check_state;

/* with CHECK_TIMES in the environment: each case's processor seconds, on stderr */
static inline void check_time(void) {
    static clock_t before;
    clock_t now = clock();
    if (getenv("CHECK_TIMES")) fprintf(stderr, "%.2f s %s\n", (double)(now - before) / CLOCKS_PER_SEC, check_state.name);
    before = now;
}
static inline void check_end_case(void) {
    if (!check_state.in_case) return;
    check_time();
    if (!check_state.checks) printf("FAILED %s: nothing was checked\n", check_state.name);
    if (check_state.case_failed || !check_state.checks) check_state.failed++; else check_state.passed++;
    check_state.in_case = 0;
}
static inline void check_begin_case(void) {
    check_state.in_case = 1;
    check_state.checks = check_state.case_failed = 0;
}
static inline void check_case(const char *format, ...) {
    va_list list;
    check_end_case();
    va_start(list, format);
    vsnprintf(check_state.name, sizeof check_state.name, format, list);
    va_end(list);
    check_begin_case();
}
static inline void check_skip(const char *what, const char *reason) {
    if (!check_state.checks) check_state.in_case = 0;
    check_end_case();
    check_state.skipped++;
    printf("skipped: %s: %s\n", what, reason);
}
static inline int check_note(int good, const char *file, int line, const char *format, ...) {
    va_list list;
    if (!good && !check_state.in_case) check_begin_case();
    check_state.checks++;
    if (good) return 1;
    if (!check_state.case_failed++) {
        printf("FAILED %s: %s:%d: ", check_state.name[0] ? check_state.name : "before the first case", file, line);
        va_start(list, format);
        vprintf(format, list);
        va_end(list);
        printf("\n");
    }
    return 0;
}
static inline int check_done(const char *program) {
    check_end_case();
    if (!check_state.passed && !check_state.failed && !check_state.skipped) {
        printf("FAILED %s: no case\n", program);
        check_state.failed++;
    }
    printf("%s: %d passed, %d failed, %d skipped\n", program, check_state.passed, check_state.failed, check_state.skipped);
    return check_state.failed != 0;
}

#define CHECK(condition) check_note(!!(condition), __FILE__, __LINE__, "%s", #condition)
#define CHECK_INT(got, want) check_int((int64_t)(got), (int64_t)(want), #got, __FILE__, __LINE__)
#define CHECK_TEXT(got, want) check_text((got), (want), #got, __FILE__, __LINE__)
/* a command's exit code and words of its output: EXITS(run("best"), 2, err, "needs"); for `last` of program.h and command.h */
#define EXITS(call, code, output, words) do { CHECK_INT(call, code); check_output(last.output, words, #call, __FILE__, __LINE__); } while (0)
/* calls void tests without parameters, in this order */
#define RUN_TESTS(...) \
    do { \
        static void (*const tests_[])(void) = {__VA_ARGS__}; \
        for (size_t i_ = 0; i_ < sizeof tests_ / sizeof *tests_; i_++) tests_[i_](); \
    } while (0)
/* passes only if |got - want| <= tolerance, so NaN fails */
#define CHECK_NEAR(got, want, tolerance) check_near((double)(got), (double)(want), (double)(tolerance), #got, __FILE__, __LINE__)

static inline int check_int(int64_t got, int64_t want, const char *what, const char *file, int line) {
    return check_note(got == want, file, line, "%s is %lld, expected %lld", what, (long long)got, (long long)want);
}
static inline int check_text(const char *got, const char *want, const char *what, const char *file, int line) {
    return check_note(got && want && strcmp(got, want) == 0, file, line, "%s is \"%s\", expected \"%s\"", what, got ? got : "(null)", want ? want : "(null)");
}
static inline int check_near(double got, double want, double tolerance, const char *what, const char *file, int line) {
    return check_note(fabs(got - want) <= tolerance, file, line, "%s is %.9g, expected %.9g within %.3g", what, got, want, tolerance);
}

static inline int check_output(const char *output, const char *words, const char *call, const char *file, int line) {
    return check_note(output && strstr(output, words), file, line, "%s: \"%s\" is not in \"%.300s\"", call, words, output ? output : "");
}

/* Returns 1 if this build's memory functions are a sanitizer's: they keep freed memory, and a library cannot replace them. */
#if defined(__SANITIZE_ADDRESS__)
enum { CHECK_SANITIZED = 1 };
#elif defined(__has_feature)
enum { CHECK_SANITIZED = __has_feature(address_sanitizer) };
#else
enum { CHECK_SANITIZED = 0 };
#endif

/* make test-slow sets VLMPROF_TEST_ALL: a test then tries the cases that make test has not tried. Its source names that variable, so that it is run again. */
static inline int check_all(void) { return getenv("VLMPROF_TEST_ALL") != NULL; }

/* A GEMM kernel for runs that are compared with each other bit by bit: always the same one here, and faster than plain */
static inline const char *steady_gemm(void) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return "avx512";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
#endif
    return "plain";
}
/* Golden data: tests/golden has the part that every machine checks; ../shared/goldens (optional) has the rest. Programs run in the repository's root. */
static inline const char *check_golden(const char *relative) {
    static char path[4][512];
    static int turn;
    struct stat info;
    char *p = path[turn++ & 3];
    snprintf(p, sizeof path[0], "tests/golden/%s", relative);
    if (stat(p, &info) == 0) return p;
    snprintf(p, sizeof path[0], "../shared/goldens/%s", relative);
    return stat(p, &info) == 0 ? p : NULL;
}
/* the whole file, malloc'ed, followed by a NUL; NULL if it cannot be read */
static inline char *check_read(const char *path, size_t *bytes) {
    FILE *f = path ? fopen(path, "rb") : NULL;
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    long length = ftell(f);
    rewind(f);
    char *text = length < 0 || length > INT32_MAX ? NULL : (char *)malloc((size_t)length + 1); /* the end of a folder is LONG_MAX */
    if (!text || fread(text, 1, (size_t)length, f) != (size_t)length) { fclose(f); free(text); return NULL; }
    fclose(f);
    text[length] = 0;
    if (bytes) *bytes = (size_t)length;
    return text;
}

/* NumPy .npy version 1.0, C order; data converted to the requested type */
typedef struct check_array { int dimensions; int64_t shape[5], count; char type[8]; unsigned char *file, *data; } check_array;
static inline int check_npy(const char *path, check_array *a) {
    size_t bytes, header;
    memset(a, 0, sizeof *a);
    a->file = (unsigned char *)check_read(path, &bytes);
    if (!a->file) return 0;
    if (bytes < 10 || memcmp(a->file, "\x93NUMPY", 6)) { free(a->file); a->file = NULL; return 0; }
    header = 10 + (size_t)(a->file[8] | a->file[9] << 8);
    const char *p = strstr((char *)a->file + 10, "'descr': '");
    snprintf(a->type, sizeof a->type, "%.3s", p + 10);
    p = strstr((char *)a->file + 10, "'shape': (") + 10;
    a->count = 1;
    while (*p != ')') {
        char *end;
        long long n = strtoll(p, &end, 10);
        if (end == p) break;
        a->shape[a->dimensions++] = n;
        a->count *= n;
        p = end + strspn(end, ", ");
    }
    a->data = a->file + header;
    return 1;
}
static inline double check_at(const check_array *a, int64_t i) {
    union { float f; double d; int32_t i; int64_t l; } u;
    if (!strcmp(a->type, "<f4")) { memcpy(&u.f, a->data + i * 4, 4); return (double)u.f; }
    if (!strcmp(a->type, "<f8")) { memcpy(&u.d, a->data + i * 8, 8); return u.d; }
    if (!strcmp(a->type, "<i4")) { memcpy(&u.i, a->data + i * 4, 4); return u.i; }
    memcpy(&u.l, a->data + i * 8, 8);
    return (double)u.l;
}
static inline void check_free(check_array *a) { free(a->file); a->file = NULL; }
#endif
