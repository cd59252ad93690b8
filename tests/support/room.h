/* room.h: calls a source file of the program in this process: makes options from a line of words, and captures stderr. Include it after check.h, folder.h and the
 * source's headers; define _POSIX_C_SOURCE 200809L before the first header. */
#ifndef ROOM_H
#define ROOM_H
#include "base/options.h"

static int room_stderr = -1;
static char *room_said;
/* Redirects stderr to a file in the test's folder. */
static inline void listen_begin(void) {
    fflush(stderr);
    room_stderr = dup(2);
    if (!freopen(in_folder("said"), "w", stderr)) abort();
    setvbuf(stderr, NULL, _IONBF, 0); /* it stays a file to the library */
}
/* Ends the redirection. Returns the captured text, valid until the next call. */
static inline const char *listen_end(void) {
    fflush(stderr);
    dup2(room_stderr, 2);
    close(room_stderr);
    free(room_said);
    room_said = check_read(in_folder("said"), NULL);
    return room_said ? room_said : "";
}
/* The value of a call; what it said is in room_said. */
#define HEARD(call) (listen_begin(), listen_end_with(call))
static inline int listen_end_with(int code) {
    listen_end();
    return code;
}
/* a call that must fail with this code and these words */
#define FAILS(call, code, words) \
    do { \
        CHECK_INT(HEARD(call), code); \
        check_note(strstr(room_said, words) != NULL, __FILE__, __LINE__, "\"%s\" is not in \"%s\"", words, room_said); \
    } while (0)

/* Options as parsed by the program; words are separated by single blanks, and %F in them is the test's folder. options_free frees them; the words stay valid until eight
 * more lines were parsed. */
static inline int options_of_words(struct options *options, const struct command *command, const char *words) {
    static char kept[8][4096];
    static char *argv[8][64];
    static int turn;
    char line[2048], *to = kept[turn & 7], *end = to + sizeof kept[0], **words_of = argv[turn++ & 7];
    int argc = 0;
    snprintf(line, sizeof line, "vlmprof %s %s", command->name, words);
    for (char *word = strtok(line, " "); word && argc < 63; word = strtok(NULL, " ")) {
        words_of[argc++] = to;
        for (; *word && to + sizeof folder + 1 < end; word++) {
            if (word[0] == '%' && word[1] == 'F') { to += snprintf(to, sizeof folder, "%s", folder); word++; }
            else *to++ = *word;
        }
        *to++ = 0;
    }
    words_of[argc] = NULL;
    memset(options, 0, sizeof *options);
    options->command = command;
    return options_parse(options, argc, words_of);
}
static inline int room_end(const char *name) {
    free(room_said);
    room_said = NULL;
    remove_folder(folder);
    return check_done(name);
}
#endif
