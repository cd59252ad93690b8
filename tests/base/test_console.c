/* test_console.c: messages on stderr, exit codes of results, and how control bytes are shown. Progress on a terminal is not tested. */
#define _POSIX_C_SOURCE 200809L
#include "base/console.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/room.h"
#include <sys/wait.h>

static void test_complain(void) {
    vp_error error = {VP_ERR_FORMAT, 3, "the place", "the text"}, nowhere = {VP_ERR_FORMAT, -1, "", "the text"}, empty = {VP_OK, -1, "", ""};
    char line[64], text[] = "a\x01\x1f b\x7f\x80\xc3\xa9~";
    check_case("a message is one line, with control bytes hidden");
    CHECK_INT(HEARD(complain(7, "%s %d", "a\nb\tc", 5)), 7);
    CHECK_TEXT(room_said, "vlmprof: a?b?c 5\n");
    hide_control_bytes(text);
    CHECK_TEXT(text, "a?? b??\xc3\xa9~"); /* nor does any byte that is not UTF-8 reach a terminal */
    check_case("the line of an error: location and text, or the text of its result code");
    error_line(line, sizeof line, VP_ERR_FORMAT, &error);
    CHECK_TEXT(line, "the place: the text");
    error_line(line, sizeof line, VP_ERR_FORMAT, &nowhere);
    CHECK_TEXT(line, "the text");
    error_line(line, sizeof line, VP_ERR_MEMORY, &empty);
    CHECK_TEXT(line, vp_result_text(VP_ERR_MEMORY));
    error_line(line, 6, VP_ERR_FORMAT, &error);
    CHECK_TEXT(line, "the p");
    check_case("... prefixed with the file, once");
    CHECK_INT(HEARD(complain_result(3, "file", VP_ERR_FORMAT, &error)), 3);
    CHECK_TEXT(room_said, "vlmprof: file: the place: the text\n");
    HEARD(complain_result(3, "place", VP_ERR_FORMAT, &error));
    CHECK_TEXT(room_said, "vlmprof: the place: the text\n");
    CHECK_INT(HEARD(complain_result(4, NULL, VP_ERR_FORMAT, &error)), 4);
    CHECK_TEXT(room_said, "vlmprof: the place: the text\n");
    check_case("exit codes of results");
    CHECK_INT(exit_code_of(VP_OK), 0);
    CHECK_INT(exit_code_of(VP_ERR_RANGE), 2);
    CHECK_INT(exit_code_of(VP_ERR_MEMORY), 4);
    CHECK_INT(exit_code_of(VP_ERR_DEVICE), 4);
    CHECK_INT(exit_code_of(VP_ERR_STATE), 4);
    CHECK_INT(exit_code_of(VP_ERR_WRITE), 5);
    CHECK_INT(exit_code_of(VP_ERR_INTERRUPTED), 130);
    CHECK_INT(exit_code_of(VP_ERR_FORMAT), 3);
    CHECK_INT(exit_code_of(VP_ERR_READ), 3);
}
static void test_quiet(void) {
    check_case("--quiet silences warnings, not errors");
    CHECK_INT(HEARD(complain(0, "a warning")), 0);
    CHECK_TEXT(room_said, "vlmprof: a warning\n");
    console_configure(1);
    CHECK_INT(HEARD(complain(0, "a warning")), 0);
    CHECK_TEXT(room_said, "");
    HEARD(complain(3, "an error"));
    CHECK_TEXT(room_said, "vlmprof: an error\n");
    console_configure(0);
}
static void test_visible(void) {
    check_case("control bytes of an answer are shown as numbers, except line ends and tabs");
    fflush(stdout);
    int kept = dup(1);
    CHECK(freopen(in_folder("out"), "w", stdout) != NULL);
    print_visible("a\nb\t\x01\x1f \x7f\xc3\xa9~\0z", 13);
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    char *text = check_read(in_folder("out"), NULL);
    CHECK_TEXT(text, "a\nb\t\\x01\\x1f \\x7f\xc3\xa9~\\x00z");
    free(text);
}
/* exit code of a process that gets SIGTERM `count` times; 50 if it saw `interrupted` */
static int code_after(int count, int in_order) {
    int status = 0;
    pid_t child;
    fflush(stdout);
    if ((child = fork()) == 0) {
        catch_signals();
        if (in_order) end_in_order();
        for (int i = 0; i < count; i++) raise(i ? SIGINT : SIGTERM);
        _exit(interrupted ? 50 : 51);
    }
    while (waitpid(child, &status, 0) < 0) { }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
static void test_signals(void) {
    check_case("a signal ends the program, or is only recorded if the program ends itself in order");
    CHECK_INT(code_after(0, 0), 51);
    CHECK_INT(code_after(1, 0), EXIT_INTERRUPTED);
    CHECK_INT(code_after(1, 1), 50);
    CHECK_INT(code_after(2, 1), EXIT_INTERRUPTED);
    check_case("progress: none in the first ten seconds if stderr is not a terminal");
    listen_begin();
    show_progress("%d of %d", 1, 2);
    show_progress("%d of %d", 2, 2);
    close_progress();
    CHECK_TEXT(listen_end(), "");
}

int main(void) {
    if (!folder_make("console")) return 1;
    RUN_TESTS(test_complain, test_quiet, test_visible, test_signals);
    return room_end("test_console");
}
