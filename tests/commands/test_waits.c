/* test_waits.c: inputs that are pipes or sockets. An input that must be a regular file is rejected at once. One that is read once, as a stream, is read when a writer
 * arrives, and SIGTERM ends the wait for one. Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _GNU_SOURCE 1
#include "support/command.h"
#include "support/server_command.h"
#include "vlmprof.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SWEEP "sweep --synthetic tiny --data %F/set.jsonl --tier_list low --top_k_list 1 --num_runs_per_sample 1 --max_new_tokens 1 --bare_every 0 --quiet "
#define RESULT "out/set_imgsizetier-low_crops0_topk1_blocks4.json"
enum { LIMIT_MS = 10000 };

/* Waits for the child at most LIMIT_MS. Returns 1 if it ended by itself. */
static int ends_in_time(pid_t child) {
    for (int waited = 0; waited < LIMIT_MS; waited += 5) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child) return 1;
        pause_ms(5);
    }
    kill(child, SIGKILL);
    return 0;
}
static void check_ends(const char *command, pid_t child, int code, const char *words) {
    int in_time = ends_in_time(child);
    finish(child, in_folder("stdout"));
    check_note(in_time, __FILE__, __LINE__, "%s: still waits after %d ms", command, LIMIT_MS);
    check_note(last.code == code, __FILE__, __LINE__, "%s: exit %d, expected %d: %s", command, last.code, code, last.err ? last.err : "");
    check_note((last.err && strstr(last.err, words)) || (last.out && strstr(last.out, words)), __FILE__, __LINE__, "%s: \"%s\" is said nowhere: %s", command,
               words, last.err ? last.err : "");
}
static void make_socket(const char *path) {
    char here[512] = "";
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    /* the address must be short, so the socket is made in the test's folder, then moved */
    snprintf(address.sun_path, sizeof address.sun_path, "vlmprof-socket");
    CHECK(getcwd(here, sizeof here) && chdir(folder) == 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && rename("vlmprof-socket", path) == 0);
    CHECK_INT(chdir(here), 0);
    close(fd);
}
/* makes path a pipe or a socket */
static void make_special(const char *path, int is_socket) {
    unlink(path);
    if (is_socket) make_socket(path);
    else CHECK_INT(mkfifo(path, 0600), 0);
}

/* ---- inputs that must be regular files */
static const struct { const char *file, *command; int code; const char *words; } REGULAR[] = {
    {"x.png", "tile %F/x.png", 3, "not a regular file"},
    {"x.png", "tile --family llava-1.5 %F/x.png", 3, "not a regular file"},
    {"x.png", "run --synthetic tiny %F/x.png -p hi", 3, "not a regular file"},
    {"scores.json", "run --synthetic tiny -p hi --num_active_blocks 2 --importance_scores_file %F/scores.json", 3, "not a regular file"},
    {"model/config.json", "run --model %F/model -p hi", 3, "not a regular file"},
    {"model/tokenizer.json", "run --model %F/model -p hi", 3, "not a regular file"},
    {"model/tokenizer.json", "tokenize --model %F/model hi", 3, "not a regular file"},
    {"model/model.safetensors", "run --model %F/model -p hi", 3, "not a regular file"},
    {"out/journal.jsonl", SWEEP "--output_dir %F/out", 5, "journal.jsonl cannot be opened: it is not a regular file"},
    {"out/journal.jsonl", "merge %F/out", 3, "not a regular file"},
    {"out/journal.jsonl", SWEEP "--output_dir %F/out --plan", 3, "not a regular file"},
    {"out/.vlmprof-merge", "merge %F/out", 5, ".vlmprof-merge cannot be opened: it is not a regular file"},
    {RESULT, SWEEP "--output_dir %F/out", 3, "not a regular file"},
    {RESULT, "merge %F/out", 3, "not a regular file"},
    {RESULT, "report %F/" RESULT, 3, "not a regular file"},
    {RESULT, "best %F/" RESULT " --budget_ms 10", 3, "not a regular file"},
    {RESULT, "compare %F/" RESULT " %F/" RESULT, 3, "not a regular file"},
    {RESULT, "fit %F/" RESULT " -o %F/fitted.json", 3, "not a regular file"},
    {"fitted.json", "predict %F/fitted.json 640x480", 3, "not a regular file"}};

static void make_files(void) {
    link_model("samples/tiny/model", in_folder("model"), "none");
    make_empty(in_folder("out"));
    CHECK_INT(cli(SWEEP "--output_dir %F/out"), 0);
}
static void test_regular(void) {
    for (int is_socket = 0; is_socket < 2; is_socket++) {
        check_case("an input that must be a regular file is a %s", is_socket ? "socket" : "pipe");
        for (size_t i = 0; i < sizeof REGULAR / sizeof *REGULAR; i++) {
            make_files();
            make_special(in_folder(REGULAR[i].file), is_socket);
            check_ends(REGULAR[i].command, start(REGULAR[i].command, NULL, in_folder("stdout"), 0), REGULAR[i].code, REGULAR[i].words);
            unlink(in_folder(REGULAR[i].file));
        }
    }
    check_case("an image that is a pipe: its sample fails, the rest is measured");
    make_empty(in_folder("new"));
    make_special(in_folder("x.png"), 0);
    check_ends("sweep", start("sweep --synthetic tiny --data %F/image.jsonl --tier_list low --top_k_list 1 --num_runs_per_sample 1 --max_new_tokens 1 "
                              "--output_dir %F/new", NULL, in_folder("stdout"), 0), 1, "(3 measured now, 1 failed)");
}

/* ---- inputs that are read once, as streams */
static const struct { const char *command, *text, *words; } STREAMS[] = {
    {"score --metric anls %F/pipe", "{\"prediction\": \"a cat\", \"references\": [\"cat\", \"a cat\"]}\n", "1 row, mean 1.0"},
    {"tile --sizes %F/pipe --csv", "640x480\n", "640"},
    {"trace %F/pipe", "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 2}]}\n",
     "aten::add"},
    {"sweep --synthetic tiny --data %F/pipe --tier_list low --top_k_list 1 --num_runs_per_sample 1 --max_new_tokens 1 --output_dir %F/streamed",
     "{\"question\": \"Only words?\"}\n", "(1 measured now, 0 failed)"}};

/* Waits until the program has set its signal handlers, and a little longer, so that it is blocked in its wait. */
static void pause_until_ready(pid_t child) {
    char path[64], line[200];
    for (int tries = 0; tries < 20000; tries++) {
        unsigned long long caught = 0;
        FILE *file;
        snprintf(path, sizeof path, "/proc/%d/status", (int)child);
        if ((file = fopen(path, "r")) == NULL) break;
        while (fgets(line, sizeof line, file)) if (!strncmp(line, "SigCgt:", 7)) caught = strtoull(line + 7, NULL, 16);
        fclose(file);
        if (caught >> (SIGTERM - 1) & 1) break;
        pause_ms(5);
    }
    pause_ms(200);
}

static void test_streams(void) {
    for (size_t i = 0; i < sizeof STREAMS / sizeof *STREAMS; i++) {
        check_case("a stream: %s", STREAMS[i].command);
        make_special(in_folder("pipe"), 0);
        pid_t child = start(STREAMS[i].command, NULL, in_folder("stdout"), 0);
        pause_ms(100);
        int fd = open(in_folder("pipe"), O_WRONLY);
        CHECK_INT(write(fd, STREAMS[i].text, strlen(STREAMS[i].text)), strlen(STREAMS[i].text));
        close(fd);
        check_ends(STREAMS[i].command, child, 0, STREAMS[i].words);
        check_case("... without a writer, SIGTERM: %s", STREAMS[i].command);
        child = start(STREAMS[i].command, NULL, in_folder("stdout"), 0);
        pause_until_ready(child);
        kill(child, SIGTERM);
        check_ends(STREAMS[i].command, child, 130, "");
        check_case("... without data, Ctrl-C: %s", STREAMS[i].command);
        child = start(STREAMS[i].command, NULL, in_folder("stdout"), 0);
        fd = open(in_folder("pipe"), O_WRONLY);
        pause_until_ready(child);
        kill(child, SIGINT);
        check_ends(STREAMS[i].command, child, 130, "");
        close(fd);
        check_case("... from a socket: %s", STREAMS[i].command);
        make_special(in_folder("pipe"), 1);
        check_ends(STREAMS[i].command, start(STREAMS[i].command, NULL, in_folder("stdout"), 0), 3, "pipe");
    }
}

/* ---- another process's merge lock */
static void test_lock(void) {
    static const char *const commands[] = {"merge %F/out", SWEEP "--output_dir %F/out"};
    int ready[2];
    char byte = 0;
    pid_t holder;
    make_files();
    CHECK_INT(pipe(ready), 0);
    fflush(stdout);
    if ((holder = fork()) == 0) {
        struct flock lock = {.l_type = F_WRLCK};
        if (fcntl(open(in_folder("out/.vlmprof-merge"), O_RDWR | O_CREAT, 0666), F_SETLK, &lock) || write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    CHECK_INT(read(ready[0], &byte, 1), 1);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        pid_t child = start(commands[i], NULL, in_folder("stdout"), 0);
        check_case("another process is merging, SIGTERM: %s", commands[i]);
        pause_until_ready(child);
        kill(child, SIGTERM);
        check_ends(commands[i], child, 130, "");
    }
    kill(holder, SIGKILL);
    CHECK(waitpid(holder, NULL, 0) == holder);
    CHECK_INT(cli("merge %F/out --quiet"), 0);
    close(ready[0]);
    close(ready[1]);
}

/* ---- SIGTERM in the longest phase of each command; predict, tokenize, info and help take none */
static const char *const LONG[] = {
    "run --synthetic tiny -p hi --num_runs 10000", "selftest", "sweep --synthetic tiny --data %F/set.jsonl --num_runs_per_sample 10000 --output_dir %F/long",
    "sweep --synthetic tiny --data %F/many.jsonl --num_samples 1000000 --plan", "sweep --synthetic tiny --data %F/many.jsonl --num_samples 1000000 --output_dir %F/long",
    "score --metric anls %F/answers.jsonl", "tile --family qwen2_vl --sizes %F/sizes", "trace %F/trace.json",
    "report %F/big", "best %F/big --budget_ms 10", "compare %F/big %F/big --force noise", "fit %F/big -o %F/f.json", "merge %F/big",
    "ask -p hi --endpoint http://127.0.0.1:%P --endpoint_model model-a --num_runs 1000",
    "ask tests/golden/images/img-200x150.png -p hi --endpoint http://127.0.0.1:%P --endpoint_model model-a --twins 1000",
    "audit --endpoint http://127.0.0.1:%P --endpoint_model model-a --family internvl --repeat 1000",
    "sweep --endpoint http://127.0.0.1:%P --endpoint_model model-a --data %F/set.jsonl --num_runs_per_sample 10000 --output_dir %F/long"};
static void write_many(const char *name, const char *head, const char *line, int count, const char *tail) {
    FILE *file = fopen(in_folder(name), "w");
    fputs(head, file);
    for (int i = 0; i < count; i++) fprintf(file, line, i);
    fputs(tail, file);
    fclose(file);
}
static void test_long(void) {
    FILE *file = fopen(in_folder("large.jsonl"), "w"); /* records of 2 MB, which result files repeat */
    for (int i = 0; i < 24; i++) {
        fprintf(file, "{\"question\": \"Only words, %d?\", \"answers\": [\"no\"], \"notes\": [0", i);
        for (int k = 0; k < 300000; k++) fputs(", 1234", file);
        fputs("]}\n", file);
    }
    fclose(file);
    CHECK_INT(cli("sweep --synthetic tiny --data %F/large.jsonl --tier_list low --top_k_list 1 2 --num_active_blocks_list 4 --num_runs_per_sample 1 --max_new_tokens 1 "
                  "--bare_every 0 --quiet --output_dir %F/big"), 0);
    write_many("many.jsonl", "", "{\"question\": \"Only words, %d?\", \"answers\": [\"no\"]}\n", 300000, "");
    write_many("answers.jsonl", "", "{\"prediction\": \"a cat %d\", \"references\": [\"cat\", \"a cat\"]}\n", 800000, "");
    write_many("sizes", "", "640x4%d\n", 1000000, "");
    write_many("trace.json", "{\"traceEvents\": [{}",
               ",\n{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add\", \"pid\": 1, \"tid\": 1, \"ts\": %d, \"dur\": 1}", 900000, "]}");
    chat_start(&server);
    chat.piece_ms = 100;
    for (size_t i = 0; i < sizeof LONG / sizeof *LONG; i++) {
        check_case("SIGTERM: %s", LONG[i]);
        make_empty(in_folder("long"));
        pid_t child = start(with_port(LONG[i]), NULL, in_folder("stdout"), 0);
        pause_until_ready(child);
        kill(child, SIGTERM);
        const int64_t asked_ns = vp_clock_ns();
        check_ends(LONG[i], child, 130, "");
        const int64_t ended_ns = vp_clock_ns();
        check_note(ended_ns - asked_ns < INT64_C(2000000000), __FILE__, __LINE__, "%s: ended after %d ms", LONG[i], (int)((ended_ns - asked_ns) / 1000000));
    }
    hostile_stop(&server);
}

/* ---- the system's reason, at each kind of open */
#define ASKS "ask -p hi --endpoint http://127.0.0.1:%P --endpoint_model model-a "
static const char *const OPENS[] = { /* %X: the path */
    ASKS "%X", ASKS "--api_key_file %X", ASKS "--ca_file %X", "tile %X", "tile --family internvl %X", "tile --family internvl --sizes %X", "tile --checkpoint %X 640x480",
    "run --synthetic tiny %X -p hi", "run --model %X -p hi", "run --synthetic tiny -p hi --num_active_blocks 2 --importance_scores_file %X", "tokenize --model %X hi",
    "tokenize --tokenizer %X hi", "sweep --synthetic tiny --data %X --dataset_name d --output_dir %F/long",
    "merge %X", "report %X", "best %X --budget_ms 10", "compare %X %X", "fit %X -o %F/f.json", "predict %X 640x480", "trace %X", "score --metric anls %X",
    "score --predictions %X", "score %F/out --scores %X -o %F/long", "run --synthetic tiny -p hi --profile -o %X", "run --synthetic tiny -p hi --profile --html %X",
    "run --synthetic tiny -p hi --profile --trace %X", "run --synthetic tiny -p hi --dump %X/d", "report %F/out --output_dir %X",
    "report %F/out --html=%X", "fit %F/out -o %X",
    SWEEP "--output_dir %X", "score %F/out --scores %F/scores.jsonl -o %X"};
static const char *filled(const char *command, const char *path) {
    static char line[4000];
    char *to = line;
    for (; *command; command++)
        if (!strncmp(command, "%X", 2)) { to += sprintf(to, "%s", path); command++; } else *to++ = *command;
    *to = 0;
    return with_port(line);
}
static void test_reasons(void) {
    static char long_name[300];
    const struct { const char *path; int number; } paths[] = {{long_name, ENAMETOOLONG}, {"%F/loop", ELOOP}, {"%F/set.jsonl/x", ENOTDIR}};
    make_files();
    write_text(in_folder("scores.jsonl"), "{\"id\": 0, \"score\": 1}\n");
    memset(long_name, 'a', sizeof long_name - 1);
    memcpy(long_name, "%F/", 3);
    CHECK_INT(symlink("loop", in_folder("loop")), 0);
    chat_start(&server);
    for (size_t i = 0; i < sizeof OPENS / sizeof *OPENS; i++)
        for (size_t k = 0; k < sizeof paths / sizeof *paths; k++) {
            const char *command = filled(OPENS[i], paths[k].path), *why = strerror(paths[k].number);
            check_case("%s: %s", why, OPENS[i]);
            cli(command);
            const int is_said = last.err && (strstr(last.err, why) || (paths[k].number == ENOTDIR && strstr(last.err, "not a folder"))
                                             || (paths[k].number == ENOTDIR && strstr(last.err, "a file with this name already exists")));
            check_note(last.code >= 2 && last.code <= 5 && is_said, __FILE__,
                       __LINE__, "%s: exit %d: %.900s", OPENS[i], last.code, last.err ? last.err + (strlen(last.err) > 600 ? strlen(last.err) - 600 : 0) : "");
        }
    hostile_stop(&server);
}

/* No descriptor is left at any open: this is said, and nothing else is blamed. Commands that open one file at a time cannot lack one. */
static void test_descriptors(void) {
    static const char *const commands[] = {
        ASKS "tests/golden/images/img-200x150.png", ASKS "--ca_file LICENSE", "ask -p hi --endpoint https://localhost:%P --endpoint_model m",
        "audit --endpoint http://127.0.0.1:%P --endpoint_model model-a --family internvl",
        "sweep --endpoint http://127.0.0.1:%P --endpoint_model model-a --data %F/set.jsonl --output_dir %F/long", SWEEP "--output_dir %F/long", "merge %F/out"};
    struct rlimit limit, few;
    make_files();
    chat_start(&server);
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        int failed = 0;
        check_case("no descriptor is left: %s", commands[i]);
        for (int most = 9; most < 22; most++) {
            make_empty(in_folder("long"));
            few = limit;
            few.rlim_cur = (rlim_t)most;
            setrlimit(RLIMIT_NOFILE, &few);
            pid_t child = start(with_port(commands[i]), NULL, in_folder("stdout"), 0);
            setrlimit(RLIMIT_NOFILE, &limit);
            finish(child, in_folder("stdout"));
            const char *said = last.err ? last.err : "";
            if (last.code < 2 || last.code == 126 || last.code == 127) continue; /* the test's or the loader's own files */
            failed += strstr(said, "Too many open files") != NULL;
            check_note(!strstr(said, "is the server up"), __FILE__, __LINE__, "%s, %d: exit %d: %s", commands[i], most, last.code, said);
        }
        check_note(failed > 0, __FILE__, __LINE__, "%s never lacked a descriptor", commands[i]);
    }
    hostile_stop(&server);
}

int main(void) {
    if (!command_begin("waits")) return 1;
    write_text(in_folder("set.jsonl"), "{\"question\": \"Only words?\"}\n");
    write_text(in_folder("image.jsonl"), "{\"question\": \"Only words?\"}\n{\"image\": \"x.png\", \"question\": \"?\"}\n{\"question\": \"More?\"}\n");
    RUN_TESTS(test_regular, test_streams, test_lock, test_long, test_reasons, test_descriptors);
    return command_end("test_waits");
}
