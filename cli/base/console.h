/* console.h: messages on stderr, exit codes, the progress line, and signals.
 * An error comes in as text, or as a vp_result with its vp_error. One line goes to stderr, an exit code comes back. */
#ifndef VLMPROF_CLI_CONSOLE_H
#define VLMPROF_CLI_CONSOLE_H
#include "vlmprof.h"
#include <signal.h>
#include <stdio.h>

enum { EXIT_WORK = 1, EXIT_USAGE = 2, EXIT_INPUT = 3, EXIT_DEVICE = 4, EXIT_OUTPUT = 5, EXIT_INTERRUPTED = 130 };
enum { LINE_BYTES = 992 }; /* capacity of an error line, for the place and the text of a vp_error */

/* 1 after a signal that followed end_in_order. A sweep then finishes its current point. */
extern volatile sig_atomic_t interrupted;

/* quiet: no progress, notes and warnings (--quiet). */
void console_configure(int quiet);

/* The bytes that start a colour on this stream, or end it (COLOR_END). "" if it is not a terminal, or if the
 * environment has NO_COLOR with a value or TERM=dumb. */
/* The argument with this number is a format of printf, and the others follow it. */
#if defined(__GNUC__)
#define PRINTS(number) __attribute__((format(printf, number, number + 1)))
#else
#define PRINTS(number)
#endif

enum console_color { COLOR_END, COLOR_BOLD, COLOR_RED, COLOR_GREEN, COLOR_YELLOW };
const char *color_bytes(FILE *out, enum console_color color);

/* Replaces each character that would control the terminal (vp_utf8_control) with '?', so that the text stays on one
 * line and shows its real content. */
void hide_control_bytes(char *text);

/* Prints one line on stderr, with control bytes replaced. With exit_code 0 it is a warning, which --quiet silences.
 * Returns exit_code, so that callers can return the call. */
int complain(int exit_code, const char *format, ...) PRINTS(2);

/* Call this after a failed write to stdout, to save the reason. Returns EXIT_OUTPUT. */
int output_failed(void);

/* Flushes all output and returns the exit code of a command that ended with `code`. Complains if stdout cannot be
 * written, but not if the reader closed the pipe (vlmprof .. | head -1). */
int end_output(int code);

/* The exit code of a library result; 0 for VP_OK. */
int exit_code_of(vp_result result);

/* Writes an error to out as "PLACE: TEXT", or the result's general text if the error has none. */
void error_line(char *out, size_t capacity, vp_result result, const vp_error *error);

/* Complains about a library error. `what` is the file or the step; it is omitted if it is NULL or if the error's line
 * already contains it. Returns exit_code, or EXIT_DEVICE if memory is exhausted. */
int complain_result(int exit_code, const char *what, vp_result result, const vp_error *error);

/* After this call the first signal only sets `interrupted`, and the command ends by itself: a sweep finishes its point.
 * A second signal ends the program at once. */
void end_in_order(void);
void end_at_once(void); /* a signal ends the process again */

/* Installs the handlers. SIGINT and SIGTERM end the program or, after end_in_order, set `interrupted`, which also ends
 * every wait. A file that grows too large and a closed pipe become write errors, not signals. */
void catch_signals(void);

/* Shows progress on stderr: one line that is updated on a terminal, otherwise a plain line every ten seconds. */
void show_progress(const char *format, ...);

/* Erases the progress line, if one is open. */
void close_progress(void);

/* printf and fprintf(stderr, ..) for text that people read: names of files, tasks and models may come from anywhere, so
 * all control characters except newlines and tabs become '?'. */
void print_plain(const char *format, ...) PRINTS(1);
void print_note(const char *format, ...) PRINTS(1);

/* Prints a text on stdout with control characters as \xNN, byte by byte; newlines and tabs are kept. A model with
 * random weights may answer with any bytes. */
void print_visible(const char *text, size_t bytes);
/* Prints a model's answer on stdout: like print_visible on a terminal, unchanged to a file or a pipe. */
void print_answer(const char *text, size_t bytes);

#endif
