/* launch.h: starts a user's server for a sweep, waits until it is ready, and ends it. A command and values come in; a
 * running server, or the reason why there is none, comes out. */
#ifndef VLMPROF_CLI_SERVER_LAUNCH_H
#define VLMPROF_CLI_SERVER_LAUNCH_H
#include "server/endpoint.h"
#include "server/request_knobs.h"
#include <sys/types.h>

/* Options of sweep's servers that are started. */
#define OPTIONS_OF_LAUNCH \
    {"server", TEXT, "COMMAND", NULL, 0, 0, NULL, \
     "shell command that starts the server at --endpoint, once for each value of a --knob; {NAME} in it becomes the " \
     "value of --knob NAME; its output goes to DIR/server-NAME-VALUE.log", \
     .needs = "endpoint endpoint_model", .excludes = "twins baseline stop_half_width"}, \
    {"ready", TEXT, "URL", NULL, 0, 0, NULL, \
     "before each block, wait until this URL answers (with --server: its /v1/models)", .needs = "endpoint"}, \
    {"ready_timeout_s", COUNT, "S", "600", 1, 86400, NULL, "how long to wait for --ready"}, \
    {"server_rounds", COUNT, "N", "2", 1, 1000, NULL, \
     "with --server: number of starts for each value; the order of the values is reversed each round, because times " \
     "drift across restarts", .needs = "server"}

struct launch_settings {
    const char *command, *ready, *folder; /* NULL: not given; the folder of the logs */
    int32_t timeout_s, rounds;
};
/* A server that was started; pid 0: none, or it exited, with the status of waitpid. */
struct launched_server { pid_t pid; char *log; int status; };

/* Checks that the command has each knob as {NAME} or, without one, that each has one value; and that no knob has a name
 * of vlmprof's. Returns 0 or EXIT_USAGE. */
int launch_check(const struct launch_settings *settings, const struct request_knobs *knobs);

/* Starts the command with a combination of values in a process group of its own, and waits for it. Returns 0,
 * EXIT_INTERRUPTED, or EXIT_DEVICE with a reason, which ends with the last lines of its log. */
int launch_server(const struct launch_settings *settings, const struct request_knobs *knobs, size_t combination,
                  struct launched_server *server, char *reason, size_t capacity);
int launch_is_alive(struct launched_server *server);
/* Writes "the server exitedWHEN (exit code 1); the end of FILE: ...". */
void launch_exit_text(const struct launched_server *server, const char *when, char *reason, size_t capacity);

/* Waits until the URL answers. Returns as launch_server; server may be NULL. */
int launch_wait(const struct launch_settings *settings, struct launched_server *server, char *reason, size_t capacity);

/* Ends the process group: SIGTERM, and SIGKILL after 10 s. */
void launch_end(struct launched_server *server);

#endif
