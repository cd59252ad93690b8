/* slow: each command that writes a file, in each state of that file, 15 s */
/* test_outputs.c: every option that names an output file, with each kind of path: a new file, one with its own permissions, a symbolic link, a dangling link, a
 * device, a pipe, the open stdout, a folder. The kind of an existing path stays; only its bytes are new. (vp_output's own rules: test_file.c.) Runs $PROGRAM (default
 * ./vlmprof) from the repository's root; its files are in a temporary folder. Devices need root; without it they are skipped. */
#define _DEFAULT_SOURCE 1
#include "vlmprof.h"
#include "support/check.h"
#include "support/program.h"
#include "support/device.h"

/* %F is the folder; the output path is appended. `begins`: the start of every such file. */
static const struct { const char *name, *command, *begins; } OUTPUTS[] = {
    {"fit -o", "fit %F/r -o ", "{"},
    {"report --html", "report %F/r --html=", "<!DOCTYPE html>"},
    {"run --profile -o", "run --synthetic tiny -p hi --max_new_tokens 1 --device cpu --profile -o ", ""},
    {"run --profile --trace", "run --synthetic tiny -p hi --max_new_tokens 1 --device cpu --profile --trace ", "{"},
    {"run --profile --html", "run --synthetic tiny -p hi --max_new_tokens 1 --device cpu --profile --html ", "<!DOCTYPE html>"},
};
static int kind_of(const char *path) {
    struct stat info;
    return lstat(path, &info) ? 0 : (int)(info.st_mode & S_IFMT);
}
static int begins(const char *path, const char *with) {
    char *text = text_of_file(path);
    int good = text && *text && !strncmp(text, with, strlen(with));
    free(text);
    return good;
}
static void test_output(size_t at) {
    const char *command = OUTPUTS[at].command, *with = OUTPUTS[at].begins, *name = OUTPUTS[at].name, *null, *full;
    struct stat info;
    check_case("%s: a new file; an existing one keeps its permissions", name);
    CHECK_INT(run("%s%%F/out", command), 0);
    CHECK(begins(in_folder("out"), with));
    write_text(in_folder("out"), "old");
    CHECK_INT(chmod(in_folder("out"), 0600), 0);
    CHECK_INT(run("%s%%F/out", command), 0);
    CHECK(begins(in_folder("out"), with) && stat(in_folder("out"), &info) == 0 && (info.st_mode & 0777) == 0600);
    check_case("%s: a symbolic link remains, its target is written", name);
    write_text(in_folder("out"), "old");
    CHECK_INT(symlink("out", in_folder("link")), 0);
    CHECK_INT(run("%s%%F/link", command), 0);
    CHECK(kind_of(in_folder("link")) == S_IFLNK && kind_of(in_folder("out")) == S_IFREG && begins(in_folder("out"), with));
    unlink(in_folder("out"));
    CHECK_INT(run("%s%%F/link", command), 0);
    CHECK(kind_of(in_folder("link")) == S_IFLNK && begins(in_folder("out"), with));
    unlink(in_folder("link"));
    unlink(in_folder("out"));
    check_case("%s: a pipe is written to and stays a pipe", name);
    CHECK_INT(mkfifo(in_folder("pipe"), 0600), 0);
    CHECK_INT(system("timeout 60 cat \"$TEST_FOLDER/pipe\" >\"$TEST_FOLDER/read\" &"), 0);
    CHECK_INT(run("%s%%F/pipe", command), 0);
    for (int i = 0; i < 100 && !begins(in_folder("read"), with); i++) usleep(20000);
    CHECK(begins(in_folder("read"), with) && kind_of(in_folder("pipe")) == S_IFIFO);
    unlink(in_folder("pipe"));
    unlink(in_folder("read"));
    check_case("%s: a link to the open stdout, like /dev/stdout", name); /* not /dev/stdout itself, because a fault would replace the machine's */
    CHECK_INT(symlink("/proc/self/fd/1", in_folder("to_stdout")), 0);
    CHECK_INT(run("%s%%F/to_stdout", command), 0);
    CHECK(last.out && *last.out && (strstr(last.out, with) || *with == '\x89') && kind_of(in_folder("to_stdout")) == S_IFLNK);
    unlink(in_folder("to_stdout"));
    check_case("%s: a folder is rejected", name);
    CHECK_INT(mkdir(in_folder("taken"), 0777), 0);
    CHECK_INT(run("%s%%F/taken", command), 5);
    CHECK(last.err && strstr(last.err, "taken") && strstr(last.err, "it is a folder"));
    CHECK_INT(rmdir(in_folder("taken")), 0);
    CHECK_INT(unfinished_files(), 0);
    null = device("null");
    full = device("full");
    if (!null || !full) {
        check_skip(name, "no device can be made here");
        return;
    }
    check_case("%s: a device is written directly; a full device is an error", name);
    CHECK_INT(run("%s'%s'", command, null), 0);
    CHECK(kind_of(null) == S_IFCHR);
    CHECK_INT(run("%s'%s'", command, full), 5);
    CHECK(last.err && strstr(last.err, "No space left") && kind_of(full) == S_IFCHR);
    unlink(in_folder("null"));
    unlink(in_folder("full"));
    CHECK_INT(unfinished_files(), 0);
}
/* how a command ends if its reader has closed the pipe, or if its file may not grow */
static void test_ends(void) {
    static const char *const commands[] = {"--help", "tile 640x480", "info", "report %F/r", "best %F/r --budget_ms 100000", "compare %F/r %F/r", "fit %F/r",
                                           "sweep --help", "tokenize --tokenizer samples/tiny/model/tokenizer.json a",
                                           "trace tests/golden/trace/torch_cpu.pt.trace.json"};
    const char *kept = program;
    static char line[1200];
    check_case("a closed pipe: exit 5 without a message");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        snprintf(line, sizeof line, "sh -c '{ sleep 0.3; %s \"$@\"; echo $? >\"$TEST_FOLDER/code\"; } | true' sh", kept);
        program = line;
        run("%s", commands[i]);
        program = kept;
        CHECK(begins(in_folder("code"), "5"));
        check_note(last.err && !strstr(last.err, "stdout"), __FILE__, __LINE__, "%s: %s", commands[i], last.err ? last.err : "");
    }
    check_case("a full stdout: exit 5 and the reason");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        snprintf(line, sizeof line, "sh -c '%s \"$@\" >/dev/full' sh", kept);
        program = line;
        check_note(run("%s", commands[i]) == 5, __FILE__, __LINE__, "%s: exit %d", commands[i], last.code);
        program = kept;
        check_note(last.err && strstr(last.err, "cannot write to stdout: No space left"), __FILE__, __LINE__, "%s: %s", commands[i], last.err ? last.err : "");
    }
    check_case("a file size limit (RLIMIT_FSIZE): exit 5, no signal, and the sweep resumes later");
    snprintf(line, sizeof line, "bash -c 'ulimit -f 2; \"$@\"' sh %s", kept);
    program = line;
    CHECK_INT(run("sweep --synthetic tiny --device cpu --data samples/questions.jsonl --output_dir %%F/limited --num_samples 4 --max_new_tokens 2 --tier_list low "
                  "--top_k_list 2 --num_active_blocks_list 2 --num_runs_per_sample 2 --quiet"), 5);
    program = kept;
    CHECK_INT(run("sweep --synthetic tiny --device cpu --data samples/questions.jsonl --output_dir %%F/limited --num_samples 4 --max_new_tokens 2 --tier_list low "
                  "--top_k_list 2 --num_active_blocks_list 2 --num_runs_per_sample 2 --quiet"), 0);
}
int main(void) {
    if (!program_begin("outputs")) return 1;
    setenv("OMP_WAIT_POLICY", "passive", 1);
    setenv("GOMP_SPINCOUNT", "1000", 1);
    check_case("the files that commands read");
    CHECK_INT(run("sweep --synthetic tiny --device cpu --data samples/questions.jsonl --output_dir %%F/r --num_samples 3 --max_new_tokens 2 --tier_list low high "
                  "--top_k_list 2 4 --num_active_blocks_list 2 4 --num_runs_per_sample 1 --quiet"), 0);
    for (size_t i = 0; i < sizeof OUTPUTS / sizeof *OUTPUTS; i++) test_output(i);
    test_ends();
    return program_done("test_outputs");
}
