/* fuzz_rows.c: any bytes after the first two as the lines that `vlmprof score` takes; the first byte chooses the metric, the second the cleaning.
 * Each row that is printed is a line of JSON. libFuzzer entry. */
#include "fuzz.h"
#include "cli/commands/command_score.c"

static void check_lines(void) {
    size_t bytes, line_bytes;
    const char *text = fuzz_said(&bytes), *end;
    for (const char *line = text; line < text + bytes; line = end + 1) {
        end = (const char *)memchr(line, '\n', (size_t)(text + bytes - line));
        MUST(end != NULL);
        line_bytes = (size_t)(end - line);
        MUST(vp_json_parse(line, line_bytes, NULL, 0, NULL, NULL, NULL) == VP_ERR_CAPACITY);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char *const metrics[] = {
        "--metric=vqa_seed",      "--metric=vqa_official",         "--metric=em",              "--metric=anls",
        "--metric=relaxed",       "--metric=mc",                   "--metric=mc_ai2d",         "--metric=mmmu",
        "--metric=mmmu_open",     "--metric=mmmu_multiple_choice", "--metric=a_okvqa",         "--metric=real_world_qa",
        "--metric=seed_bench",    "--metric=cider",                "--metric=caption_jaccard", "--metric=captions"};
    static const char *const cleanings[] = {"--clean=rule", "--clean=none", "--clean=last", "--clean=frequent", "--clean=run"};
    static struct memory_file file;
    const char *words[5] = {"vlmprof", "score"};
    struct options options = {0};
    if (bytes < 2) return 0;
    fuzz_listen();
    words[2] = metrics[data[0] % (sizeof metrics / sizeof *metrics)];
    words[3] = cleanings[data[1] % (sizeof cleanings / sizeof *cleanings)];
    words[4] = memory_file_fill(&file, data + 2, bytes - 2);
    options.command = &command_score;
    MUST(options_parse(&options, 5, (char **)(size_t)words) == 0);
    int code = run_command(&options);
    MUST(code == 0 || code == EXIT_INPUT || code == EXIT_USAGE);
    check_lines();
    options_free(&options);
    return 0;
}
