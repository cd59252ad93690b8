/* console.c: messages on stderr, exit codes, the progress line, and signals.
 * Everything here writes to stderr, except print_visible and print_answer, which write to stdout. */
#include "base/console.h"
#include "vlmprof_json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

volatile sig_atomic_t interrupted;
static volatile sig_atomic_t ends_in_order;
static int progress_is_open; /* the terminal shows a progress line without a newline yet */

static int is_quiet;
void console_configure(int quiet) { is_quiet = quiet; }
const char *color_bytes(FILE *out, enum console_color color) {
    static const char *const bytes[] = {"\033[0m", "\033[1m", "\033[31m", "\033[32m", "\033[33m"};
    const char *off = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return (off && *off) || !terminal || !strcmp(terminal, "dumb") || !isatty(fileno(out)) ? "" : bytes[color];
}

void hide_control_bytes(char *text) {
    size_t bytes = strlen(text), to = 0;
    for (size_t at = 0; at < bytes;) {
        size_t shown = vp_utf8_visible_bytes(text + at, bytes - at),
               hidden = vp_utf8_control(text + at + shown, bytes - at - shown);
        memmove(text + to, text + at, shown);
        to += shown;
        at += shown + hidden;
        if (hidden) text[to++] = '?';
    }
    text[to] = 0;
}

int complain(int exit_code, const char *format, ...) {
    char line[LINE_BYTES * 2];
    va_list list;
    if (!exit_code && is_quiet) return 0;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    hide_control_bytes(line);
    fprintf(stderr, "%s%svlmprof:%s %s\n", progress_is_open ? "\n" : "",
            color_bytes(stderr, exit_code ? COLOR_RED : COLOR_YELLOW), color_bytes(stderr, COLOR_END), line);
    progress_is_open = 0;
    return exit_code;
}

static int output_error; /* errno of the first write to stdout that failed */
int output_failed(void) {
    if (!output_error) output_error = errno;
    return EXIT_OUTPUT;
}
int end_output(int code) {
    if (!ferror(stdout)) errno = 0; /* otherwise an earlier write failed, and errno has its reason */
    if (fflush(stdout) || ferror(stdout)) output_failed();
    else if (!output_error) return code && interrupted ? EXIT_INTERRUPTED : code;
    if (output_error == EPIPE) return EXIT_OUTPUT;
    return complain(EXIT_OUTPUT, "cannot write to stdout: %s", strerror(output_error ? output_error : EIO));
}

int exit_code_of(vp_result result) {
    switch (result) {
    case VP_OK: return 0;
    case VP_ERR_RANGE: return EXIT_USAGE;
    case VP_ERR_MEMORY: case VP_ERR_DEVICE: case VP_ERR_STATE: return EXIT_DEVICE;
    case VP_ERR_WRITE: return EXIT_OUTPUT;
    case VP_ERR_INTERRUPTED: return EXIT_INTERRUPTED;
    default: return EXIT_INPUT;
    }
}

void error_line(char *out, size_t capacity, vp_result result, const vp_error *error) {
    const char *text = error->text[0] ? error->text : vp_result_text(result);
    if (error->where[0]) snprintf(out, capacity, "%s: %s", error->where, text);
    else snprintf(out, capacity, "%s", text);
}

int complain_result(int exit_code, const char *what, vp_result result, const vp_error *error) {
    char line[LINE_BYTES];
    error_line(line, sizeof line, result, error);
    if (result == VP_ERR_MEMORY) exit_code = EXIT_DEVICE;
    if (!what || strstr(line, what)) return complain(exit_code, "%s", line);
    return complain(exit_code, "%s: %s", what, line);
}

void end_in_order(void) { ends_in_order = 1; }
void end_at_once(void) { ends_in_order = 0; }
static void on_signal(int number) {
    (void)number;
    /* a second signal ends even a sweep at once: the journal only ever contains whole lines */
    if (interrupted || !ends_in_order) _exit(EXIT_INTERRUPTED);
    interrupted = 1;
}
void catch_signals(void) {
    struct sigaction action = {0};
    action.sa_handler = on_signal; /* without SA_RESTART: waiting for a pipe or a terminal ends */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = SIG_IGN; /* a write then fails with EFBIG or EPIPE, which is handled like a full disk */
    sigaction(SIGXFSZ, &action, NULL);
    sigaction(SIGPIPE, &action, NULL);
}

void show_progress(const char *format, ...) {
    static int64_t last_ns, first_ns;
    int64_t now = vp_clock_ns(), every = isatty(STDERR_FILENO) ? 100000000 : INT64_C(10000000000);
    char line[256];
    struct winsize window;
    va_list list;
    if (!first_ns) first_ns = last_ns = now;
    if (is_quiet || now - last_ns < every) return;
    last_ns = now;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    hide_control_bytes(line);
    progress_is_open = isatty(STDERR_FILENO);
    if (progress_is_open && ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1
        && window.ws_col < sizeof line)
        line[window.ws_col - 1] = 0; /* a line that wraps could not be overwritten */
    fprintf(stderr, progress_is_open ? "\r\033[K%s" : "%s\n", line);
    fflush(stderr);
}
void close_progress(void) {
    if (progress_is_open) fprintf(stderr, "\r\033[K");
    progress_is_open = 0;
}

static void print_cleaned(FILE *out, const char *format, va_list list) {
    char line[LINE_BYTES], *text = line;
    va_list again;
    va_copy(again, list);
    int bytes = vsnprintf(line, sizeof line, format, list);
    if (bytes >= (int)sizeof line && (text = (char *)malloc((size_t)bytes + 1)) != NULL)
        vsnprintf(text, (size_t)bytes + 1, format, again);
    if (!text) text = line; /* without memory, the text is cut */
    va_end(again);
    for (char *piece = text;;) {
        char *end = piece + strcspn(piece, "\n\t"), kept = *end;
        *end = 0;
        hide_control_bytes(piece);
        fputs(piece, out);
        if (!kept) break;
        putc(kept, out);
        piece = end + 1;
    }
    if (text != line) free(text);
}
void print_plain(const char *format, ...) {
    va_list list;
    va_start(list, format);
    print_cleaned(stdout, format, list);
    va_end(list);
}
void print_note(const char *format, ...) {
    va_list list;
    if (is_quiet) return;
    va_start(list, format);
    print_cleaned(stderr, format, list);
    va_end(list);
}
void print_visible(const char *text, size_t bytes) {
    for (size_t at = 0; at < bytes;) {
        size_t shown = vp_utf8_visible_bytes(text + at, bytes - at), end;
        fwrite(text + at, 1, shown, stdout);
        at += shown;
        for (end = at + vp_utf8_control(text + at, bytes - at); at < end; at++) {
            if (text[at] == '\n' || text[at] == '\t') putchar(text[at]);
            else printf("\\x%02x", (unsigned char)text[at]);
        }
    }
}
void print_answer(const char *text, size_t bytes) {
    if (isatty(STDOUT_FILENO)) print_visible(text, bytes); else fwrite(text, 1, bytes, stdout);
}
