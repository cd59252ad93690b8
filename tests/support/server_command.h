/* server_command.h: commands that ask the scripted server of chat_server.h, and a search through the files that they leave. Include it after command.h. */
#ifndef SERVER_COMMAND_H
#define SERVER_COMMAND_H
#include "chat_server.h"

static hostile_server server;
static const char KEY[] = "sk-never-in-a-file-4711";

/* a command in which %P is replaced by the server's port */
static inline const char *with_port(const char *command) {
    static char room[4][4000];
    static int turn;
    char *line = room[turn++ & 3], *to = line;
    for (; *command && to + 16 < line + sizeof room[0]; command++) {
        if (!strncmp(command, "%P", 2)) {
            to += snprintf(to, 12, "%d", server.port);
            command++;
        } else *to++ = *command;
    }
    *to = 0;
    return line;
}
#define RUNS(want, command) runs_at(__FILE__, __LINE__, want, command)
static inline int runs_at(const char *file, int line, int want, const char *command) {
    cli(with_port(command));
    return check_note(last.code == want, file, line, "%s: exit %d, expected %d: %s", command, last.code, want, last.err ? last.err : "");
}
#define SAYS(words) check_note(last.err && strstr(last.err, words), __FILE__, __LINE__, "stderr lacks \"%s\": %s", words, last.err ? last.err : "")
/* Returns 1 if a file below the folder contains the text. */
static inline int holds(const char *path, const char *text) {
    DIR *d = opendir(path);
    struct dirent *e;
    int found = 0;
    char name[1024];
    while (d && (e = readdir(d)) != NULL) {
        size_t bytes = 0;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        char *data = check_read(name, &bytes);
        found |= data && memmem(data, bytes, text, strlen(text)) != NULL;
        free(data);
        found |= holds(name, text);
    }
    if (d) closedir(d);
    return found;
}
#endif
