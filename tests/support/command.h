/* command.h: runs the program with a command line, keeps its exit code, stdout and stderr in `last`, and reads the JSON that it prints or writes. A test defines
 * _POSIX_C_SOURCE 200809L first. */
#ifndef COMMAND_H
#define COMMAND_H
#include "check.h"
#include "folder.h"
#include "vlmprof_json.h"
#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program;

static inline void pause_ms(long ms) {
    struct timespec t;
    t.tv_sec = ms / 1000;
    t.tv_nsec = ms % 1000 * 1000000;
    nanosleep(&t, NULL);
}

/* ---------------------------------------------------------------------------------------------------- running the program */
enum { ARGUMENTS = 64 };
typedef struct run { int code; char *out, *err; size_t out_bytes; int err_lines; } run; /* code -N: killed by signal N */
static run last;

/* Splits a command at blanks; 'single quotes' keep words together, and "double ones" enclose a whole argument. %F stands for the test folder, %G for steady_gemm(). */
static inline int split(const char *command, char *room, size_t capacity, char **argv) {
    int count = 0;
    char *to = room;
    while (*command && count < ARGUMENTS - 1 && to + 600 < room + capacity) {
        int quoted = 0;
        command += strspn(command, " ");
        if (!*command) break;
        argv[count++] = to;
        if (*command == '"' && strchr(command + 1, '"')) {
            const char *end = strchr(command + 1, '"');
            to += snprintf(to, (size_t)(room + capacity - to), "%.*s", (int)(end - command - 1), command + 1) + 1;
            command = end + 1;
            continue;
        }
        for (; *command && (quoted || *command != ' '); command++) {
            if (*command == '\'') quoted = !quoted;
            else if (!strncmp(command, "%F", 2)) {
                to += snprintf(to, 300, "%s", folder);
                command++;
            } else if (!strncmp(command, "%G", 2)) {
                to += snprintf(to, 300, "%s", steady_gemm());
                command++;
            } else *to++ = *command;
        }
        *to++ = 0;
    }
    argv[count] = NULL;
    return count;
}

/* the file of stderr: each output file of the test's folder has its own */
static inline const char *err_of(const char *out_path) {
    static char path[700];
    if (strncmp(out_path, folder, strlen(folder)) || !strcmp(out_path, in_folder("stdout"))) return in_folder("stderr");
    snprintf(path, sizeof path, "%s.err", out_path);
    return path;
}
/* Leading words NAME=VALUE are the program's environment. */
static inline pid_t start(const char *command, const char *input, const char *out_path, long file_limit_bytes) {
    static char room[8192];
    char *argv[ARGUMENTS + 1];
    const char *in_path = "/dev/null";
    int set = 0;
    argv[0] = (char *)(size_t)program;
    split(command, room, sizeof room, argv + 1);
    while (argv[set + 1] && argv[set + 1][0] != '-' && isupper((unsigned char)argv[set + 1][0]) && strchr(argv[set + 1], '=')) set++;
    if (input) {
        in_path = in_folder("stdin");
        write_text(in_path, input);
    }
    pid_t child = fork();
    if (child == 0) {
        int in = open(in_path, O_RDONLY), out = open(out_path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        int err = open(err_of(out_path), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (in < 0 || out < 0 || err < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(126);
        if (file_limit_bytes) { /* simulates a full disk: writing beyond the limit fails with EFBIG */
            struct rlimit limit;
            limit.rlim_cur = limit.rlim_max = (rlim_t)file_limit_bytes;
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &limit);
        }
        for (int i = 1; i <= set; i++) putenv(argv[i]);
        argv[set] = argv[0];
        alarm(300);
        execv(program, argv + set);
        _exit(127);
    }
    return child;
}
static inline int finish(pid_t child, const char *out_path) {
    int status = 0;
    FREE_ALL(last.out, last.err);
    while (waitpid(child, &status, 0) < 0) { }
    last.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    last.out = strncmp(out_path, folder, strlen(folder)) ? NULL : check_read(out_path, &last.out_bytes);
    last.err = check_read(err_of(out_path), NULL);
    last.err_lines = 0;
    for (const char *p = last.err; p && *p; p++) last.err_lines += *p == '\n';
    return last.code;
}
static inline int cli_with(const char *command, const char *input, const char *out_path, long limit) { return finish(start(command, input, out_path, limit), out_path); }
static inline int cli(const char *command) { return cli_with(command, NULL, in_folder("stdout"), 0); }

/* the common form of rejections: the exit code, an empty stdout, one to four lines on stderr, the words that help */
static inline int refused_at(const char *file, int line, const char *command, const char *input, int code, const char *words) {
    cli_with(command, input, in_folder("stdout"), 0);
    int good = check_note(last.code == code, file, line, "%s: exit %d, expected %d: %s", command, last.code, code, last.err ? last.err : "");
    good &= check_note(last.out && !last.out_bytes, file, line, "%s: stdout is not empty: %.80s", command, last.out ? last.out : "");
    good &= check_note(last.err_lines >= 1 && last.err_lines <= 4, file, line, "%s: %d lines on stderr", command, last.err_lines);
    return good & check_note(last.err && strstr(last.err, words), file, line, "%s: stderr lacks \"%s\": %s", command, words, last.err ? last.err : "");
}
#define REFUSED(command, code, words) refused_at(__FILE__, __LINE__, command, NULL, code, words)

/* ------------------------------------------------------------------------------------------------------------- JSON */
typedef struct document { char *text; vp_json_node *nodes; vp_json json; } document;
static inline int parse(document *d, const char *text, size_t bytes) {
    size_t needed = 0;
    d->text = NULL;
    d->nodes = NULL;
    vp_json_parse(text, bytes, NULL, 0, NULL, &needed, NULL);
    d->nodes = (vp_json_node *)calloc(needed + 1, sizeof *d->nodes);
    return vp_json_parse(text, bytes, d->nodes, needed, &d->json, NULL, NULL) == VP_OK;
}
static inline int load(document *d, const char *path) {
    size_t bytes = 0;
    char *text = check_read(path, &bytes);
    int good = text && parse(d, text, bytes);
    if (!text) d->nodes = NULL;
    d->text = text;
    return good;
}
static inline void unload(document *d) {
    FREE_ALL(d->text, d->nodes);
}
static inline double number(const document *d, uint32_t object, const char *key) {
    double value = 0;
    return vp_json_to_double(&d->json, vp_json_get(&d->json, object, key), &value) == VP_OK ? value : (double)NAN;
}
static inline int is_null(const document *d, uint32_t object, const char *key) {
    uint32_t node = vp_json_get(&d->json, object, key);
    return node != VP_JSON_NONE && d->nodes[node].type == VP_JSON_NULL;
}
static inline uint32_t member(const document *d, uint32_t object, const char *key) { return vp_json_get(&d->json, object, key); }
static inline int is_text(const document *d, uint32_t object, const char *key, const char *text) { return vp_json_equals(&d->json, member(d, object, key), text); }
/* runs a command that must print one JSON document; the caller frees d->nodes if this returns 1 */
static inline int cli_json(const char *command, int code, document *d) {
    const int got = cli(command); /* before last.err is read */
    int good = check_note(got == code, __FILE__, __LINE__, "%s: exit %d, expected %d: %s", command, got, code, last.err ? last.err : "");
    return good && check_note(last.out && parse(d, last.out, last.out_bytes), __FILE__, __LINE__, "%s: stdout is no JSON", command);
}
static inline void check_keys(const document *d, uint32_t object, const char *keys) { /* separated by blanks */
    char one[80];
    for (const char *p = keys; *p; p += strspn(p, " ")) {
        size_t bytes = strcspn(p, " ");
        snprintf(one, sizeof one, "%.*s", (int)bytes, p);
        check_note(vp_json_get(&d->json, object, one) != VP_JSON_NONE, __FILE__, __LINE__, "the key %s is missing", one);
        p += bytes;
    }
}

/* after the end of a line */
static inline const char *next_line(const char *p) { return strchr(p, '\n') ? strchr(p, '\n') + 1 : p + strlen(p); }
static const char *const stages[] = {"preprocess", "h2d", "vit", "connector", "embed", "prefill", "head", "sample", "decode", "detok"};

/* Checks host and device time, launches, FLOPs and bytes of each stage. The device's time is the stage's time, and host stages have none. The prefill's FLOPs are those
 * of its linears (computed here from the tiny shape, 2 of 8 experts) and at most as much again for attention and the rest. */
static inline void check_stage_detail(const document *d, uint32_t row, double tokens, double blocks) {
    uint32_t all = member(d, row, "stage_detail"), ms = member(d, row, "stages");
    double linears = 2 * tokens * blocks * (4 * 128 * 128 + 8 * 128 + 2 * 3 * 128 * 64);
    CHECK_INT(d->nodes[all].count, 10);
    for (int i = 0; i < 10; i++) {
        uint32_t s = member(d, all, stages[i]);
        int ran = !is_null(d, ms, stages[i]), host = i == 0 || i == 9;
        check_keys(d, s, "wall_ms device_ms launches flops bytes");
        CHECK(ran ? number(d, s, "wall_ms") >= 0 : is_null(d, s, "wall_ms"));
        if (host || !ran) CHECK(is_null(d, s, "device_ms") && is_null(d, s, "launches") && is_null(d, s, "flops") && is_null(d, s, "bytes"));
        else CHECK_NEAR(number(d, s, "device_ms"), number(d, ms, stages[i]), 0);
        if (ran && i >= 2 && i <= 8) CHECK(number(d, s, "launches") >= 1 && number(d, s, "bytes") > 0);
    }
    /* a GPU computes the last block for the last token alone */
    CHECK(number(d, member(d, all, "prefill"), "flops") >= linears / 2 && number(d, member(d, all, "prefill"), "flops") <= 2 * linears);
}

/* A copy of a golden checkpoint: links, except for the file `changed`, which the caller writes. */
static inline void link_model(const char *golden, const char *to, const char *changed) {
    char here[512], from[1024], target[1024];
    DIR *d = opendir(golden);
    struct dirent *e;
    remove_folder(to);
    mkdir(to, 0777);
    if (!getcwd(here, sizeof here)) return;
    while (d && (e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.' || !strcmp(e->d_name, changed)) continue;
        snprintf(from, sizeof from, "%s/%s/%s", here, golden, e->d_name);
        snprintf(target, sizeof target, "%s/%s", to, e->d_name);
        CHECK_INT(symlink(from, target), 0);
    }
    if (d) closedir(d);
}
/* Checks that every entry of a selftest's JSON is OK and within its limits; returns how many are of `backend`. */
static inline int check_selftest(const document *d, const char *backend) {
    uint32_t checks = member(d, 0, "checks");
    int found = 0;
    CHECK_INT(number(d, 0, "failed"), 0);
    CHECK_INT(number(d, 0, "passed"), d->nodes[checks].count);
    for (uint32_t i = checks + 1; i < d->nodes[checks].end; i = d->nodes[i].end) {
        CHECK_INT(d->nodes[member(d, i, "ok")].type, VP_JSON_TRUE);
        CHECK(number(d, i, "image_features_error") <= number(d, i, "image_features_limit") && number(d, i, "logits_error") <= number(d, i, "logits_limit"));
        CHECK(number(d, i, "routed_logits_error") <= number(d, i, "routed_logits_limit") && number(d, i, "logits_limit") < 0.1);
        if (is_text(d, i, "weights", "fp32")) CHECK(number(d, i, "logits_limit") <= 2e-5 && number(d, i, "tokens_equal") == number(d, i, "tokens"));
        else CHECK(number(d, i, "logits_error") > 1e-4); /* bf16 is another arithmetic: it was really run */
        CHECK(number(d, i, "ms_per_request") > 0);
        found += is_text(d, i, "backend", backend);
    }
    return found;
}

/* 1 where $PROGRAM finds a GPU on this machine */
static inline int finds_gpu(void) {
    static int known = -1;
    document d;
    if (known >= 0) return known;
    known = 0;
    if (cli_json("info --json", 0, &d)) {
        known = d.nodes[member(&d, 0, "gpus")].count > 0;
        free(d.nodes);
    }
    return known;
}

static inline int command_begin(const char *name) {
    program = getenv("PROGRAM") ? getenv("PROGRAM") : strdup(built("tests/vlmprof-hooks"));
    return folder_make(name);
}
static inline int command_end(const char *name) {
    remove_folder(folder);
    FREE_ALL(last.out, last.err);
    return check_done(name);
}
#endif
