/* test_command_tokenize.c: the tokenize command: text and ids.
 * Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "support/command.h"

/* ------------------------------------------------------------------------------------------------------------- tokenize */
static void test_tokenize(void) {
    const char *model = check_golden("models/tiny-a");
    char command[700];
    check_case("tokenize");
    if (!CHECK(model != NULL)) return;
    snprintf(command, sizeof command, "tokenize --model %s 'What is this?'", model);
    CHECK_INT(cli(command), 0);
    CHECK_TEXT(last.out, "{\"text\": \"What is this?\", \"ids\": [262, 250, 504, 32]}\n");
    snprintf(command, sizeof command, "tokenize --tokenizer %s/tokenizer.json", model);
    CHECK_INT(cli_with(command, "What is this?\n\na\tb", in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "[262, 250, 504, 32]}\n{\"text\": \"\", \"ids\": []}\n{\"text\": \"a\\tb\", \"ids\": ["));
    snprintf(command, sizeof command, "tokenize --model %s --decode '[262, 250,504 32]'", model);
    CHECK_INT(cli(command), 0);
    CHECK_TEXT(last.out, "{\"text\": \"What is this?\", \"ids\": [262, 250, 504, 32]}\n");
    snprintf(command, sizeof command, "tokenize --model %s --json 'What is this?' 'a b'", model);
    EXITS(cli(command), 0, out, "{\"text\": \"What is this?\", \"ids\": [262, 250, 504, 32]}\n");
    CHECK(last.out && strstr(last.out, "\n{\"summary\": {\"lines\": 2, \"text_bytes\": 16, \"tokens\": "));
    snprintf(command, sizeof command, "tokenize --model %s", model);
    refused_at(__FILE__, __LINE__, command, "good\nbad \xff\n", 2, "line 2");
    snprintf(command, sizeof command, "tokenize --model %s --decode '1 two'", model);
    REFUSED(command, 2, "two");
    REFUSED("tokenize hello", 2, "--tokenizer FILE");
    REFUSED("tokenize --tokenizer samples/cat.jpg hello", 3, "cat.jpg");
    REFUSED("tokenize --synthetic tiny --skip_special hello", 2, "--decode");
}

int main(void) {
    if (!command_begin("command_tokenize")) return 1;
    test_tokenize();
    return command_end("test_command_tokenize");
}
