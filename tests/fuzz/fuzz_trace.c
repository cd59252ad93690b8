/* fuzz_trace.c: any bytes after the first as a Chrome trace: read, made to tables and printed. The first
 * byte chooses the options. What is printed is UTF-8, as JSON it can be read. libFuzzer entry. */
#include "fuzz.h"
#include "cli/commands/command_trace.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char *const forms[] = {"--row_limit=20", "--json", "--csv", "--profile_format=cprofile"};
    static struct memory_file file;
    const char *words[8] = {"vlmprof", "trace"}, *said;
    size_t said_bytes;
    struct options options = {0};
    int count = 2, code;
    if (!bytes) return 0;
    fuzz_listen();
    words[count++] = memory_file_fill(&file, data + 1, bytes - 1);
    words[count++] = forms[data[0] & 3];
    if (data[0] & 4) words[count++] = "--partial";
    if (data[0] & 8) words[count++] = "--group_by_input_shape";
    if (data[0] & 16) words[count++] = "--sort_by=count";
    options.command = &command_trace;
    MUST(options_parse(&options, count, (char **)(size_t)words) == 0);
    code = run_command(&options);
    MUST(code == 0 || code == EXIT_INPUT);
    said = fuzz_said(&said_bytes);
    MUST(vp_utf8_valid_bytes(said, said_bytes) == said_bytes);
    if (!code && (data[0] & 3) == 1) MUST(vp_json_parse(said, said_bytes, NULL, 0, NULL, NULL, NULL) == VP_ERR_CAPACITY);
    options_free(&options);
    return 0;
}
