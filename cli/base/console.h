/* console.h: messages on stderr, exit codes, the progress line, and what a signal does. */
#ifndef VLMPROF_CLI_CONSOLE_H
#define VLMPROF_CLI_CONSOLE_H
#include "vlmprof.h"
#include <signal.h>

enum { EXIT_WORK = 1, EXIT_USAGE = 2, EXIT_INPUT = 3, EXIT_DEVICE = 4, EXIT_OUTPUT = 5, EXIT_INTERRUPTED = 130 };
enum { LINE_BYTES = 832 }; /* of a reason: a vp_error's place and text fit */

extern volatile sig_atomic_t interrupted; /* a signal came: a sweep finishes the current point */

/* One line on stderr; control bytes of file names and texts become '?', so that it stays one. Returns the exit code. */
int complain(int exit_code, const char *format, ...);

int exit_code_of(vp_result result);

void error_line(char *out, size_t capacity, vp_result result, const vp_error *error);

/* what: the file or step concerned; not repeated where the library's error already names it */
int complain_result(int exit_code, const char *what, vp_result result, const vp_error *error);

/* From here on a signal lets the command end by itself: a sweep finishes its point, convert tidies up. Other commands end at once. */
void end_in_order(void);

/* SIGINT and SIGTERM end the program, or set `interrupted`. */
void catch_signals(void);

/* Progress on stderr: one updating line on a terminal, else a plain line every ten seconds. */
void show_progress(const char *format, ...);
void close_progress(void);

void print_visible(const char *text, size_t bytes); /* control codes of noise answers do not reach the terminal */

#endif
