/* fuzz_options.c: any words as the command line of each command: the first byte chooses the command, line ends separate the words. What is parsed
 * keeps to the command's table; nothing is run. libFuzzer entry. */
#include "fuzz.h"
#include "base/console.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "tile/family.h"

#define COMMAND(name) &command_##name,
static const struct command *const COMMANDS[] = {VLMPROF_COMMANDS(COMMAND) NULL};
enum { COMMAND_COUNT = sizeof COMMANDS / sizeof *COMMANDS - 1, WORDS_MOST = 64 };

static void check_value(const struct option_spec *spec, const struct option_value *value) {
    int has_text = spec->kind != FLAG && (value->text || (value->given && spec->kind != MAYBE));
    if (!has_text) return;
    MUST(value->text != NULL);
    if (spec->kind == COUNT) MUST(value->number >= spec->least && value->number <= spec->most);
    if (spec->kind == REAL) MUST(value->real >= (double)spec->least && value->real <= (double)spec->most);
    if (spec->kind == CHOICE) MUST(has_word(spec->choices, value->text));
    if (spec->kind == COUNTS || spec->kind == TEXTS || spec->kind == WHOLE_TEXTS) MUST(value->count > 0);
    for (size_t i = 0; i < value->count; i++) {
        MUST(value->items[i] != NULL);
        if (spec->kind == COUNTS) MUST(value->numbers[i] >= spec->least && value->numbers[i] <= spec->most);
    }
}
static void check_options(const struct options *options, int argc) {
    vp_tile_options tiles;
    MUST(options->operand_count + 2 <= (size_t)argc && options->key_count % 2 == 0);
    for (size_t i = 0; i < options->command->option_count; i++) check_value(&options->command->options[i], &options->values[i]);
    for (size_t i = 0; i < options->key_count; i++) MUST(options->keys[i] != NULL);
    if (options->key_count) MUST(has_family_keys(options));
    if (has_option(options, "preprocess") && has_option(options, "crops") && tile_options_of(options, &tiles) == 0)
        MUST(tiles.max_crops >= 1 && tiles.crops >= 0 && tiles.vision_tokens >= 0);
    if (has_option(options, "sort_by")) check_sort_key(text_of(options, "sort_by"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *argv[WORDS_MOST + 1], *words, program[] = "vlmprof";
    struct options options = {0};
    int64_t width, height;
    int argc = 2, code;
    if (!bytes) return 0;
    fuzz_silence();
    words = (char *)malloc(bytes);
    MUST(words != NULL);
    memcpy(words, data + 1, bytes - 1);
    words[bytes - 1] = 0;
    options.command = COMMANDS[data[0] % COMMAND_COUNT];
    options.commands = COMMANDS;
    argv[0] = program;
    argv[1] = (char *)(size_t)options.command->name;
    for (char *word = strtok(words, "\n"); word && argc < WORDS_MOST; word = strtok(NULL, "\n")) argv[argc++] = word;
    argv[argc] = NULL;
    code = options_parse(&options, argc, argv);
    MUST(code == 0 || code == EXIT_USAGE);
    if (!code) check_options(&options, argc);
    if (argc > 2 && can_parse_size(argv[2], &width, &height)) MUST(width >= 0 && height >= 0);
    options_free(&options);
    free(words);
    return 0;
}
