/* launch.c: starts a user's server for a sweep, waits until it is ready, and ends it. */
#include "server/launch.h"

#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "results/knobs.h"
#include "vlmprof_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LAST_LINES = 5, LAST_BYTES = 600, END_S = 10 };
static const int64_t POLL_NS = INT64_C(100000000), SECOND_NS = INT64_C(1000000000);

/* ---- the command */
/* The knob whose {NAME} is here; knobs->count if there is none. */
static size_t knob_here(const struct request_knobs *knobs, const char *at) {
    size_t i = 0;
    for (; i < knobs->count; i++) {
        const size_t bytes = strlen(knobs->items[i].path);
        if (*at == '{' && !strncmp(at + 1, knobs->items[i].path, bytes) && at[bytes + 1] == '}') break;
    }
    return i;
}
static int is_plain(const char *text) {
    while (isalnum((unsigned char)*text) || (*text && strchr("._-", *text))) text++;
    return !*text;
}
int launch_check(const struct launch_settings *settings, const struct request_knobs *knobs) {
    for (size_t i = 0; i < knobs->count; i++) {
        const char *name = knobs->items[i].path, *at = settings->command;
        for (int knob = 0; knob < KNOB_OWN; knob++)
            if (!strcmp(KNOBS[knob].key, name) || !strcmp("policy", name))
                return complain(EXIT_USAGE, "--knob %s: vlmprof has a knob of this name; choose another", name);
        if (!is_plain(name) || strchr(name, '.'))
            return complain(EXIT_USAGE, "--knob %.60s: a name consists of letters, digits, _ and -", name);
        for (size_t k = knobs->items[i].words.count; !at && knobs->items[i].words.count > 1 && k-- > 0;)
            if (!is_plain(knobs->items[i].words.items[k]))
                return complain(EXIT_USAGE, "--knob %s: several values become parts of file names: use letters, "
                                            "digits, ., _ and -", name);
        while (at && *at && knob_here(knobs, at) != i) at++;
        if (at && !*at) return complain(EXIT_USAGE, "--knob %s: --server has no {%s}", name, name);
    }
    if (knobs->count >= KNOB_OWN_MOST) /* sweep --choices adds "policy" */
        return complain(EXIT_USAGE, "--knob: at most %d names", KNOB_OWN_MOST - 1);
    return 0;
}
/* The command with the words of a combination, quoted for the shell, and "NAME-VALUE" of each for the log's name. */
static char *fill_command(const char *command, const struct request_knobs *knobs, size_t combination,
                          struct text_buffer *name) {
    struct text_buffer out = {NULL, 0, 0};
    const char **words = (const char **)zeroed(knobs->count + 1, sizeof *words);
    for (size_t i = knobs->count; i-- > 0; combination /= knobs->items[i].words.count)
        words[i] = knobs->items[i].words.items[combination % knobs->items[i].words.count];
    for (size_t i = 0; i < knobs->count; i++) text_add_format(name, "-%s-%.60s", knobs->items[i].path, words[i]);
    for (const char *at = command; *at;) {
        const size_t knob = knob_here(knobs, at);
        if (knob == knobs->count) text_add(&out, at++, 1);
        else {
            shell_word(&out, words[knob]);
            at += strlen(knobs->items[knob].path) + 2;
        }
    }
    free((void *)words);
    for (char *byte = name->data; byte && *byte; byte++)
        if (!isalnum((unsigned char)*byte) && !strchr("._-", *byte)) *byte = '-';
    return out.data;
}
static int run_child(const char *command, const char *log) {
    const int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY, 0666), none = open("/dev/null", O_RDONLY);
    char line[80];
    time_t now = time(NULL);
    struct tm utc;
    if (fd < 0 || none < 0 || setpgid(0, 0)) return 127;
    if (gmtime_r(&now, &utc) && strftime(line, sizeof line, "# %Y-%m-%dT%H:%M:%SZ ", &utc)
        && (write(fd, line, strlen(line)) < 0 || write(fd, command, strlen(command)) < 0 || write(fd, "\n", 1) < 0))
        return 127;
    if (dup2(none, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0) return 127;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    return 127;
}

/* ---- its life */
int launch_is_alive(struct launched_server *server) {
    if (server->pid && waitpid(server->pid, &server->status, WNOHANG) == server->pid) {
        kill(-server->pid, SIGKILL); /* what it left behind */
        server->pid = 0;
    }
    return server->pid != 0;
}
void launch_end(struct launched_server *server) {
    const int64_t end_ns = vp_clock_ns() + END_S * SECOND_NS;
    const struct timespec pause = {0, POLL_NS / 10};
    if (server->pid) kill(-server->pid, SIGTERM);
    while (launch_is_alive(server) && vp_clock_ns() < end_ns) nanosleep(&pause, NULL);
    if (server->pid) {
        kill(-server->pid, SIGKILL);
        while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    server->pid = 0;
    free(server->log);
    server->log = NULL;
}
static void add_last_lines(const char *log, char *reason, size_t capacity) {
    char *text = NULL;
    size_t bytes = 0, from, lines = 0;
    if (vp_file_read(log, (size_t)1 << 30, &text, &bytes, NULL) != VP_OK) return;
    while (bytes && text[bytes - 1] == '\n') text[--bytes] = 0;
    for (from = bytes; from && bytes - from < LAST_BYTES && lines < LAST_LINES; from--) lines += text[from - 1] == '\n';
    if (lines == LAST_LINES) from++;
    for (char *byte = text + from; *byte; byte++) if (*byte == '\n') *byte = '|';
    hide_control_bytes(text + from);
    snprintf(reason + strlen(reason), capacity - strlen(reason), "; the end of %s: %s", log, text + from);
    free(text);
}
void launch_exit_text(const struct launched_server *server, const char *when, char *reason, size_t capacity) {
    const int is_signal = WIFSIGNALED(server->status);
    snprintf(reason, capacity, "the server exited%.300s (%s %d)", when, is_signal ? "signal" : "exit code",
             is_signal ? WTERMSIG(server->status) : WEXITSTATUS(server->status));
    add_last_lines(server->log, reason, capacity);
}
/* Returns 1 if the URL answers with a status below 500, also if it wants a key. */
static int answers(const char *url) {
    vp_server_options options = vp_server_options_default();
    const char *host = strstr(url, "://"), *path = host ? strchr(host + 3, '/') : NULL;
    char *base = copy_text(url, path ? (size_t)(path - url) : strlen(url)), *text = NULL;
    vp_server *server = NULL;
    size_t bytes = 0;
    int status = 0;
    options.url = base;
    options.connect_timeout_ms = 2000;
    options.idle_timeout_ms = options.total_timeout_ms = 5000;
    options.max_retries = 0;
    if (vp_server_open(&options, &server, NULL) == VP_OK)
        vp_server_get(server, path ? path : "/", &status, &text, &bytes, NULL);
    vp_server_close(server);
    FREE_ALL(base, text);
    return status > 0 && status < 500;
}
int launch_wait(const struct launch_settings *settings, struct launched_server *server, char *reason, size_t capacity) {
    const int64_t begin_ns = vp_clock_ns(), end_ns = begin_ns + settings->timeout_s * SECOND_NS;
    const struct timespec pause = {0, POLL_NS};
    while (!interrupted) {
        if (server && !launch_is_alive(server)) {
            char when[300];
            snprintf(when, sizeof when, " before %.200s answered", settings->ready);
            launch_exit_text(server, when, reason, capacity);
            return EXIT_DEVICE;
        }
        if (answers(settings->ready)) return 0;
        if (vp_clock_ns() >= end_ns) {
            snprintf(reason, capacity, "%.200s did not answer within %d s", settings->ready, settings->timeout_s);
            if (server) add_last_lines(server->log, reason, capacity);
            return EXIT_DEVICE;
        }
        show_progress("waiting for %.200s, %.0f s", settings->ready, (double)(vp_clock_ns() - begin_ns) / 1e9);
        nanosleep(&pause, NULL);
    }
    return EXIT_INTERRUPTED;
}
int launch_server(const struct launch_settings *settings, const struct request_knobs *knobs, size_t combination,
                  struct launched_server *server, char *reason, size_t capacity) {
    struct text_buffer name = {NULL, 0, 0};
    int code;
    text_add_string(&name, "server");
    char *command = fill_command(settings->command, knobs, combination, &name);
    text_add_string(&name, ".log");
    if (answers(settings->ready)) {
        snprintf(reason, capacity, "%.200s answered before --server was started: another server is using its port, "
                                   "perhaps one left by an earlier sweep", settings->ready);
        FREE_ALL(command, name.data);
        return EXIT_DEVICE;
    }
    server->log = join_path(settings->folder, name.data);
    show_progress("starting %.200s", command);
    server->pid = fork();
    if (!server->pid) _exit(run_child(command, server->log));
    if (server->pid < 0) {
        server->pid = 0;
        snprintf(reason, capacity, "--server cannot be started: %s", strerror(errno));
        code = EXIT_DEVICE;
    } else {
        setpgid(server->pid, server->pid); /* also here: whoever comes first */
        code = launch_wait(settings, server, reason, capacity);
    }
    if (code) launch_end(server);
    FREE_ALL(command, name.data);
    return code;
}
