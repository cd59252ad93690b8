/* test_option_values.c: every option of every command, from the commands' own tables, with unlikely values: empty, a blank, invalid UTF-8, 100 kB, hyphens, numbers out
 * of range, text for numbers. They are parsed in this process: a value that is not valid for a number, choice or flag must be rejected with exit code 2. The program is
 * run with the values that the parser accepts. It must end with an exit code that its help lists, and with a message on stderr if it failed. Each option gets one value,
 * the next option the next value of the list; with VLMPROF_TEST_ALL=1 each gets all of them. A new option is covered if its command is; a new command needs a row in
 * BASE. Runs $PROGRAM inside a temporary folder, so that outputs with odd names are in it. */
#define _DEFAULT_SOURCE 1
#include "base/options.h"
#include "commands/commands.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/hostile_server.h"
#include "vlmprof_json.h"

#include <errno.h>
#include <fcntl.h>
#include "support/room.h"
#include <sys/wait.h>

enum { WORDS = 40, LONG_BYTES = 100000, SECONDS = 600 /* the time limit only stops a program that hangs */ };
#define COMMAND(name) &command_##name,
static const struct command *const COMMANDS[] = {VLMPROF_COMMANDS(COMMAND) NULL};
static char program[4096], root[2048], *long_value, *long_digits;

/* A small task for each command: words separated by blanks; %R is the repository's root, %P a server's port. The folder contains r/ (a sweep's results) and t.json (a
 * trace). An option under test replaces its value here. */
static const struct { const char *command, *words; } BASE[] = {
    {"run", "--synthetic=tiny --prompt=hi --max_new_tokens=1 --threads=1"},
    {"ask", "--endpoint=http://127.0.0.1:%P --endpoint_model=m --prompt=hi --max_new_tokens=1"},
    {"tile", "640x480"},
    {"audit", "--endpoint=http://127.0.0.1:%P --endpoint_model=m --family=gemma3 --sizes=64x64"},
    {"sweep", "--synthetic=tiny --data=%R/samples/questions.jsonl --output_dir=swept --num_samples=1 --max_new_tokens=1 --tier_list=low --top_k_list=2 "
              "--num_active_blocks_list=2 --num_runs_per_sample=1 --threads=1 --quiet"},
    {"merge", "r"}, {"tokenize", "--tokenizer=%R/samples/tiny/model/tokenizer.json hello"}, {"score", "--metric=em rows.jsonl"},
    {"report", "r"}, {"fit", "r"}, {"predict", "model.json 640x480"}, {"best", "r --budget_ms=1000"}, {"policy", "r --budget_ms=1000"}, {"compare", "r r"},
    {"trace", "t.json"}, {"info", ""}, {"help", ""}, {"selftest", "--synthetic=tiny-gemma3 --threads=1"},
};

/* a server that counts image tokens like gemma3 */
static hostile_server server;
static void answer(const char *headers, const char *body, char *reply, size_t capacity) {
    char text[200];
    (void)headers;
    snprintf(text, sizeof text, "{\"choices\":[{\"message\":{\"content\":\"A\"}}],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":1}}",
             strstr(body, "image/png") ? 279 : 21);
    snprintf(reply, capacity, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(text), text);
}

/* Runs the program with these words. Returns its exit code, or -1 if a signal ended it (SIGALRM: it took too long). */
static int run_words(char *const *words) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        int in = open("/dev/null", O_RDONLY), out = open("stdout", O_WRONLY | O_CREAT | O_TRUNC, 0666), err = open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(126);
        alarm(SECONDS);
        execv(program, words);
        _exit(126);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) { }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
/* The words of a command's row in BASE without the option `name`, then `more`. Returns their number; 0 if there is no row. */
static int base_words(const struct command *command, const char *name, char *more, char **words) {
    static char room[4096];
    char *to = room;
    int count = 2;
    const char *base = NULL;
    size_t bytes = strlen(name);
    for (size_t i = 0; i < sizeof BASE / sizeof *BASE; i++)
        if (!strcmp(BASE[i].command, command->name)) base = BASE[i].words;
    if (!base) return 0;
    words[0] = program;
    words[1] = (char *)(size_t)command->name;
    while (*base) {
        size_t length = strcspn(base, " ");
        int same = !strncmp(base, "--", 2) && !strncmp(base + 2, name, bytes) && (length == bytes + 2 || base[bytes + 2] == '=');
        if (length && !same && count < WORDS - 2) {
            words[count++] = to;
            for (size_t i = 0; i < length; i++) {
                if (!strncmp(base + i, "%R", 2)) {
                    to += sprintf(to, "%s", root);
                    i++;
                } else if (!strncmp(base + i, "%P", 2)) {
                    to += sprintf(to, "%d", server.port);
                    i++;
                } else *to++ = base[i];
            }
            *to++ = 0;
        }
        base += length + (base[length] == ' ');
    }
    if (more) words[count++] = more;
    words[count] = NULL;
    return count;
}
static int run_base(const struct command *command, const char *name, char *more) {
    char *words[WORDS];
    return base_words(command, name, more, words) ? run_words(words) : -1;
}
/* Returns 1 if this value must be rejected: not a valid number or choice, or a value for a flag. */
static int must_refuse(const struct option_spec *spec, const char *value) {
    if (spec->kind == FLAG) return 1;
    if (spec->kind == CHOICE) return 1;
    return (spec->kind == COUNT || spec->kind == REAL || spec->kind == COUNTS) && strcmp(value, "-1") != 0;
}
/* Parses the command line with the option set to this value. Returns the exit code. */
static int parse_value(const struct command *command, const struct option_spec *spec, const char *value) {
    char *word = (char *)malloc(strlen(spec->name) + strlen(value) + 4), *words[WORDS];
    sprintf(word, "--%s=%s", spec->name, value);
    struct options options = {.command = command, .commands = COMMANDS};
    int code = HEARD(options_parse(&options, base_words(command, spec->name, word, words), words));
    options_free(&options);
    check_note(code == 0 || (code == 2 && !strncmp(room_said, "vlmprof: ", 9)), __FILE__, __LINE__, "%s %.80s: exit %d: %.200s", command->name, word, code, room_said);
    check_note(!must_refuse(spec, value) || code == 2, __FILE__, __LINE__, "%s %.80s: exit %d, expected 2: %.200s", command->name, word, code, room_said);
    free(word);
    return code;
}
/* Runs the program with this value. It must end with code `wanted`; if that is -1, with any code in the help. */
static void run_value(const struct command *command, const struct option_spec *spec, const char *value, int wanted) {
    char *word = (char *)malloc(strlen(spec->name) + strlen(value) + 4), *said;
    sprintf(word, "--%s=%s", spec->name, value);
    int code = run_base(command, spec->name, word);
    said = check_read("stderr", NULL);
    check_note(code >= 0 && (code <= 5 || code == 130), __FILE__, __LINE__, "%s %.80s: %s", command->name, word,
               code < 0 ? "ended by a signal, or took too long" : "an exit code that the help does not name");
    check_note(code != 2 || (said && !strncmp(said, "vlmprof: ", 9)), __FILE__, __LINE__, "%s %.80s: exit 2 without words", command->name, word);
    check_note(wanted < 0 || code == wanted, __FILE__, __LINE__, "%s %.80s: exit %d, expected %d: %.200s", command->name, word, code, wanted, said ? said : "");
    FREE_ALL(said, word);
}
static int takes_numbers(const struct option_spec *spec) { return spec->kind == COUNT || spec->kind == REAL || spec->kind == COUNTS; }
/* The unlikely values for an option. Returns their number. */
static size_t values_of(const struct option_spec *spec, const char **values) {
    static const char *const odd[] = {"", " ", "\xff\xfe", "-", "--", "nan", "inf", "99999999999999999999", "1e400", "0x10", ",", "-1"};
    static char least[32], most[32];
    size_t count = 0;
    for (; count < sizeof odd / sizeof *odd; count++) values[count] = odd[count];
    values[count++] = takes_numbers(spec) ? long_digits : long_value;
    snprintf(least, sizeof least, "%lld", (long long)spec->least - (spec->least > INT64_MIN));
    snprintf(most, sizeof most, "%lld", (long long)spec->most + (spec->most < INT64_MAX));
    if (takes_numbers(spec) && spec->least > INT64_MIN) values[count++] = least;
    if (takes_numbers(spec) && spec->most < INT64_MAX) values[count++] = most;
    return count;
}
static void test_command(const struct command *command) {
    static size_t turn; /* index of the accepted value to run next */
    int has_refused = 0;
    check_case("%s: the base command line works", command->name);
    CHECK_INT(run_base(command, "help", NULL), 0);
    for (size_t at = 0; at < command->option_count; at++) {
        const struct option_spec *spec = &command->options[at];
        const char *values[20], *passed[20];
        size_t count, pass_count = 0, first, most;
        if (spec->kind == GROUP) continue;
        check_case("%s --%s with unlikely values", command->name, spec->name);
        count = values_of(spec, values);
        for (size_t i = 0; i < count; i++) {
            if (parse_value(command, spec, values[i]) == 0) passed[pass_count++] = values[i];
            else if (!has_refused++) run_value(command, spec, values[i], 2);
        }
        first = turn++;
        most = check_all() ? pass_count : pass_count > 0;
        for (size_t i = 0; i < most; i++) run_value(command, spec, passed[(first + i) % pass_count], -1);
    }
}
/* Returns 1 if a text is one JSON document, or JSON lines. */
static int is_json(const char *text) {
    static vp_json_node nodes[1 << 16];
    vp_json json;
    if (vp_json_parse(text, strlen(text), nodes, sizeof nodes / sizeof *nodes, &json, NULL, NULL) == VP_OK) return 1;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        if (vp_json_parse(line, strcspn(line, "\n"), nodes, sizeof nodes / sizeof *nodes, &json, NULL, NULL) != VP_OK) return 0;
        if (!line[strcspn(line, "\n")]) break;
    }
    return *text != 0;
}
/* For every command with results (help has only texts), --quiet leaves stderr empty and --json makes stdout pure JSON. */
static void test_quiet_and_json(const struct command *command) {
    static char *const flags[] = {"--quiet", "--json"};
    const int has_json = strcmp(command->name, "help") != 0;
    for (int i = 0; i < 1 + has_json; i++) {
        check_case("%s %s", command->name, flags[i]);
        int code = run_base(command, flags[i] + 2, flags[i]);
        char *out = check_read("stdout", NULL);
        char *err = check_read("stderr", NULL);
        check_note(code == 0, __FILE__, __LINE__, "%s %s: exit %d: %.200s", command->name, flags[i], code, err ? err : "");
        if (i) check_note(out && is_json(out), __FILE__, __LINE__, "%s --json prints no JSON: %.200s", command->name, out ? out : "");
        else check_note(err && !*err, __FILE__, __LINE__, "%s --quiet is not quiet: %.200s", command->name, err ? err : "");
        FREE_ALL(out, err);
    }
}
int main(void) {
    static const hostile_step call[] = {{HOSTILE_CALL, NULL, 0}, {HOSTILE_KEEP, NULL, 0}};
    static const hostile_reply replies[] = {call};
    char line[3 * sizeof program + 2 * sizeof root + 600];
    const char *given = getenv("PROGRAM");
    if (!getcwd(root, sizeof root) || !folder_make("option-values")) return 1;
    snprintf(program, sizeof program, "%s%s%s", given && *given == '/' ? "" : root, given && *given == '/' ? "" : "/", given ? given : "build/tests/vlmprof-hooks");
    setenv("OMP_WAIT_POLICY", "passive", 1); /* so that the program does not restart itself */
    setenv("GOMP_SPINCOUNT", "1000", 1);
    long_value = (char *)calloc(1, LONG_BYTES + 1);
    long_digits = (char *)calloc(1, LONG_BYTES + 1);
    memset(long_value, 'a', LONG_BYTES);
    memset(long_digits, '9', LONG_BYTES);
    hostile_start(&server, replies, 1);
    server.call = answer;
    if (chdir(folder)) return 1;
    write_text("rows.jsonl", "{\"prediction\": \"yes\", \"references\": [\"yes\"]}\n");
    snprintf(line, sizeof line, "\"%s\" sweep --model \"%s\"/tests/golden/othermodels/molmo_7b_o/checkpoint --data \"%s\"/samples/questions.jsonl --output_dir r "
             "--num_samples 2 --max_new_tokens 2 --image_knob max_crops=1,2 --num_active_blocks_list 2 3 --num_runs_per_sample 1 --bare_every 0 --quiet >/dev/null "
             "2>&1 && \"%s\" run --synthetic tiny -p hi --max_new_tokens 1 --profile --num_runs 1 --trace t.json >/dev/null 2>&1 && \"%s\" fit r -o model.json "
             ">/dev/null && cp r/*_imgsizemax_crops1_topk0_blocks2.json result.json", program, root, root, program, program);
    check_case("the files that commands read");
    CHECK_INT(system(line), 0);
    for (const struct command *const *command = COMMANDS; *command; command++) test_quiet_and_json(*command);
    for (const struct command *const *command = COMMANDS; *command; command++) test_command(*command);
    hostile_stop(&server);
    if (chdir(root)) return 1;
    FREE_ALL(long_value, long_digits);
    return room_end("test_option_values");
}
