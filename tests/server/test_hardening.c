/* test_hardening.c: the program against servers and files that are made to break it: pictures whose headers are, keys that come back, counts at the
 * edge of their type, long lines, links, a terminal, a small stack.
 * Runs $PROGRAM from the repository's root; files are in a temporary folder. */
#define _GNU_SOURCE 1
#include "vlmprof.h"
#include "support/command.h"
#include "support/server_command.h"

#define URL "--endpoint http://127.0.0.1:%P --endpoint_model model-a "

/* ---- pictures */
/* A PNG file of one grey pixel whose header contains another size. */
static void write_png(const char *name, uint32_t width, uint32_t height) {
    uint8_t file[] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R', 0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0,
                      0, 0, 0, 9, 'I', 'D', 'A', 'T', 0x78, 0x9c, 0x63, 0, 0, 0, 1, 0, 1, 0x5f, 0xe5, 0xc3, 0x4b, 0, 0, 0, 0, 'I', 'E', 'N', 'D',
                      0xae, 0x42, 0x60, 0x82};
    uint32_t crc = 0xffffffffu;
    for (int i = 0; i < 4; i++) {
        file[16 + i] = (uint8_t)(width >> (24 - 8 * i));
        file[20 + i] = (uint8_t)(height >> (24 - 8 * i));
    }
    for (int i = 12; i < 29; i++) {
        crc ^= file[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xedb88320u & (0 - (crc & 1)));
    }
    for (int i = 0; i < 4; i++) file[29 + i] = (uint8_t)(~crc >> (24 - 8 * i));
    write_file(in_folder(name), (char *)file, sizeof file);
}
static void test_pictures(void) {
    char text[2000], here[512] = "";
    CHECK(getcwd(here, sizeof here) != NULL);
    write_png("wraps.png", 37837, 37840);
    write_png("wide.png", 65535, 65535);
    snprintf(text, sizeof text, "{\"id\": 1, \"image\": \"%s/wraps.png\", \"question\": \"What?\", \"answers\": [\"bus\"]}\n"
             "{\"id\": 2, \"image\": \"%s/wide.png\", \"question\": \"What?\", \"answers\": [\"bus\"]}\n"
             "{\"id\": 3, \"image\": \"%s/%s\", \"question\": \"What?\", \"answers\": [\"bus\"]}\n",
             folder, folder, here, check_golden("images/img-200x150.png"));
    write_text(in_folder("lies.jsonl"), text);
    check_case("headers of 1.4 and 4.3 billion pixels: these points fail, the others are measured");
    RUNS(1, "sweep " URL "--data %F/lies.jsonl --max_new_tokens 8 --num_runs_per_sample 1 --output_dir %F/out");
    SAYS("(3 measured now, 2 failed)");
    CHECK(holds(in_folder("out"), "37837 x 37840 pixels; the limit is 100000000"));
    remove_folder(in_folder("out"));
    check_case("the same for a single picture, and with --same_image");
    RUNS(3, "ask %F/wraps.png -p What " URL);
    SAYS("37837 x 37840");
    RUNS(3, "ask %F/wide.png -p What --same_image " URL);
    RUNS(3, "run %F/wraps.png -p What --synthetic tiny");
}
static int32_t first_size[2];
static hostile_reply note_width(hostile_server *from) {
    if (!first_size[0] && !strncmp(from->request, "POST", 4)) hostile_png_size(from->request_body, first_size);
    return chat_choose(from);
}
static void test_warm_up(void) {
    static const char *const names[] = {"images/img-640x300.png", "images/img-90x90.png", "images/img-200x150.png"};
    char text[3000], here[512] = "";
    size_t used = 0;
    CHECK(getcwd(here, sizeof here) != NULL);
    for (int i = 0; i < 3; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "{\"id\": %d, \"image\": \"%s/%s\", \"question\": \"What?\", \"answers\": [\"bus\"]}\n", i, here,
                                 check_golden(names[i]));
    write_text(in_folder("set.jsonl"), text);
    check_case("the warm-up's picture has the median size if the first image is larger");
    server.choose = note_width;
    RUNS(0, "sweep " URL "--data %F/set.jsonl --max_new_tokens 8 --num_runs_per_sample 1 --output_dir %F/out");
    server.choose = chat_choose;
    CHECK_INT(first_size[0], 200);
    remove_folder(in_folder("out"));
}

/* ---- replies of a server */
/* An answer in one piece with this usage and these timings. */
static const char *usage_sent = "{}", *timings_sent = "{}", *props_sent = "{}";
static hostile_reply answer(hostile_server *from) {
    static char body[20000], reply[21000];
    static hostile_step steps[2];
    if (!strncmp(from->request, "GET /props", 10)) snprintf(body, sizeof body, "%s", props_sent);
    else if (strncmp(from->request, "POST", 4)) return chat_choose(from);
    else
        snprintf(body, sizeof body, "{\"model\":\"model-a\",\"choices\":[{\"message\":{\"content\":\"bus\"},\"finish_reason\":\"stop\"}],\"usage\":%s,\"timings\":%s}",
                 usage_sent, timings_sent);
    snprintf(reply, sizeof reply, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    steps[0] = (hostile_step){HOSTILE_SEND, reply, 0};
    steps[1] = (hostile_step){HOSTILE_KEEP, NULL, 0};
    return steps;
}
/* A stream whose prompt count is the largest possible. */
static hostile_reply largest(hostile_server *from) {
    static const char reply[] = HOSTILE_STREAM "\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":null}]}\n\n"
        "data: {\"choices\":[{\"delta\":{\"content\":\"us\"},\"finish_reason\":\"stop\"}]}\n\n"
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":2147483647,\"completion_tokens\":2147483647}}\n\ndata: [DONE]\n\n";
    static const hostile_step steps[] = {{HOSTILE_SEND, reply, 0}, {HOSTILE_CLOSE, NULL, 0}};
    return strncmp(from->request, "POST", 4) ? chat_choose(from) : steps;
}
#define SWEEP "sweep " URL "--data %F/set.jsonl --max_new_tokens 8 --num_runs_per_sample 1 --output_dir %F/out "
/* A sweep, run twice, so that everything that was written is read back. */
static void sweep_twice(int want, const char *summary) {
    RUNS(want, SWEEP);
    SAYS(summary);
    RUNS(want, SWEEP);
    SAYS("(0 measured now");
    CHECK(!strstr(last.err, "damaged") && !strstr(last.err, "out of place"));
}
static void test_sent(void) {
    static char deep[512];
    server.choose = answer;
    check_case("the API key as JSON escapes, in the server's times and in its description");
    timings_sent = "{\"prompt_ms\":1.5,\"seen\":\"Bearer \\u0073k-never-in-a-file-4711\"}";
    props_sent = "{\"build_info\":\"b7\",\"arguments\":[\"--api-key\",\"sk\\u002dnever-in-a-file-4711\"]}";
    sweep_twice(0, "(3 measured now, 0 failed)");
    CHECK(holds(in_folder("out"), "Bearer [key]") && holds(in_folder("out"), "\"[key]\""));
    CHECK(!holds(folder, "k-never-in") && !holds(folder, "never-in-a-file"));
    remove_folder(in_folder("out"));
    check_case("numbers and texts of a server that span several lines");
    timings_sent = "{\n  \"prompt_ms\": 1.5,\r\n  \"predicted_ms\": 2\n}";
    props_sent = "{\n  \"build_info\": \"b7\",\n  \"slots\": [\n    1\n  ]\n}\n";
    sweep_twice(0, "(3 measured now, 0 failed)");
    RUNS(0, "report %F/out");
    CHECK(holds(in_folder("out"), "\"prompt_ms\": 1.5"));
    remove_folder(in_folder("out"));
    check_case("numbers and texts nested as deeply as JSON allows");
    snprintf(deep, sizeof deep, "{\"a\":%.60s1%.60s}", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
             "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
    timings_sent = props_sent = deep;
    sweep_twice(0, "(3 measured now, 0 failed)");
    remove_folder(in_folder("out"));
    timings_sent = props_sent = "{}";
    check_case("the largest counts are stored and read back; larger ones fail the point");
    usage_sent = "{\"prompt_tokens\":2147483647,\"completion_tokens\":2147483647,\"prompt_tokens_details\":{\"image_tokens\":2147483647,\"cached_tokens\":2147483647}}";
    sweep_twice(0, "(3 measured now, 0 failed)");
    RUNS(0, "report %F/out");
    remove_folder(in_folder("out"));
    check_case("twins with the largest possible counts: the image adds nothing");
    server.choose = largest;
    RUNS(0, SWEEP "--twins 2");
    RUNS(0, SWEEP "--twins 2");
    CHECK(!strstr(last.err, "damaged") && holds(in_folder("out"), "the image adds 0 tokens to the prompt"));
    remove_folder(in_folder("out"));
    server.choose = answer;
    usage_sent = "{\"prompt_tokens\":9223372036854775807,\"completion_tokens\":9223372036854775807}";
    RUNS(3, SWEEP);
    SAYS("is not a count");
    usage_sent = "{}";
    server.choose = chat_choose;
    remove_folder(in_folder("out"));
}

/* ---- lines */
static void test_lines(void) {
    static const char record[] = "{\"id\": 1, \"question\": \"What?\", \"answers\": [\"bus\"]}\n";
    char *line = malloc(1300000);
    FILE *file = fopen(in_folder("long.jsonl"), "wb");
    if (!CHECK(line != NULL && file != NULL)) return;
    check_case("a line of 70 MB: an error with its number and length, in every reader");
    memset(line, 'x', 1000000);
    fputs(record, file);
    for (int i = 0; i < 70; i++) fwrite(line, 1, 1000000, file);
    fputs("\n", file);
    fclose(file);
    REFUSED("sweep --synthetic tiny --data %F/long.jsonl --output_dir %F/out", 3, "line 2 has 70000000 bytes; the limit is 64 MB");
    REFUSED("score --metric anls %F/long.jsonl", 3, "line 2 has 70000000 bytes; the limit is 64 MB");
    char *text = check_read(in_folder("long.jsonl"), NULL);
    cli_with("tokenize --synthetic tiny", text, in_folder("stdout"), 0);
    CHECK_INT(last.code, 3);
    SAYS("line 2 has 70000001 bytes; the limit is 64 MB");
    free(text);
    memset(line, 'x', 1299998);
    memcpy(line + 1299998, "\n", 2);
    cli_with("tile --sizes -", line, in_folder("stdout"), 0);
    CHECK_INT(last.code, 3);
    SAYS("line 1 has 1299999 bytes");
    free(line);
    remove_folder(in_folder("out"));
}
/* ---- a folder of the Hugging Face cache: links into ../../blobs */
static void test_links(void) {
    char here[512] = "", from[1024], to[1024], name[64];
    DIR *listing = opendir(check_golden("models/tiny-a"));
    struct dirent *entry;
    int blobs = 0;
    check_case("a model in the Hugging Face cache: every file is a relative link out of the folder");
    mkdir(in_folder("cache"), 0777);
    mkdir(in_folder("cache/blobs"), 0777);
    mkdir(in_folder("cache/snapshots"), 0777);
    mkdir(in_folder("cache/snapshots/1a2b"), 0777);
    CHECK(getcwd(here, sizeof here) != NULL);
    while (listing && (entry = readdir(listing)) != NULL) {
        size_t bytes = 0;
        char *data;
        snprintf(from, sizeof from, "%s/%s", check_golden("models/tiny-a"), entry->d_name);
        if (entry->d_name[0] == '.' || (data = check_read(from, &bytes)) == NULL) continue;
        snprintf(to, sizeof to, "%s/cache/blobs/%d", folder, blobs);
        write_file(to, data, bytes);
        free(data);
        snprintf(name, sizeof name, "../../blobs/%d", blobs++);
        snprintf(to, sizeof to, "%s/cache/snapshots/1a2b/%s", folder, entry->d_name);
        CHECK_INT(symlink(name, to), 0);
    }
    if (listing) closedir(listing);
    CHECK_INT(cli("run samples/cat.jpg -p What --max_new_tokens 2 --model %F/cache/snapshots/1a2b"), 0);
}
/* ---- a terminal */
/* The program's output on a terminal of its own; its exit code is in last.code. */
static size_t on_terminal(const char *command, char *out, size_t capacity) {
    static char room[8192];
    char *argv[ARGUMENTS + 1];
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    size_t used = 0;
    ssize_t got;
    pid_t child;
    int status = 0, slave;
    argv[0] = (char *)(size_t)program;
    split(command, room, sizeof room, argv + 1);
    if (master < 0 || grantpt(master) || unlockpt(master) || (slave = open(ptsname(master), O_RDWR | O_NOCTTY)) < 0) return 0;
    if ((child = fork()) == 0) {
        setenv("NO_COLOR", "1", 1);
        dup2(slave, 1);
        dup2(slave, 2);
        close(slave);
        close(master);
        execv(program, argv);
        _exit(127);
    }
    close(slave);
    while (used + 1 < capacity && (got = read(master, out + used, capacity - 1 - used)) > 0) used += (size_t)got;
    close(master);
    while (waitpid(child, &status, 0) < 0) { }
    last.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out[used] = 0;
    return used;
}
static const char *content_sent;
static hostile_reply escapes(hostile_server *from) {
    (void)from;
    return chat_json("200 OK", content_sent);
}
static void test_terminal(void) {
    static const char bad[] = {'\x1b', '\a', '\b', '\x7f', 0};
    static char out[20000];
    check_case("escape sequences in a server's answer have no effect on a terminal");
    content_sent = "{\"model\":\"m\\u001b[31m\",\"choices\":[{\"message\":{\"content\":\"a\\u001b]0;title\\u0007\\u001b[2J\\u009b5m\\u0008\\u007fz\"},"
                   "\"finish_reason\":\"st\\u001b[1mop\"}],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":3},\"timings\":{\"k\\u001b[1m\":\"v\\u001b[2m\"}}";
    server.choose = escapes;
    CHECK(on_terminal(with_port("ask samples/cat.jpg -p What " URL), out, sizeof out) > 100);
    CHECK_INT(last.code, 0);
    CHECK(strpbrk(out, bad) == NULL && strstr(out, "\xc2\x9b") == NULL && strstr(out, "title") != NULL);
    content_sent = "{\"error\":{\"message\":\"bad \\u001b[31mred\\u009b1m\"}}";
    CHECK(on_terminal(with_port("ask samples/cat.jpg -p What " URL), out, sizeof out) > 20);
    CHECK_INT(last.code, 4);
    CHECK(strpbrk(out, bad) == NULL && strstr(out, "\xc2\x9b") == NULL && strstr(out, "red") != NULL);
    server.choose = chat_choose;
    check_case("a missing certificate file");
    RUNS(3, "ask samples/cat.jpg -p What --ca_file %F/none " URL);
    SAYS("No such file");
}
/* ---- a small stack */
static void test_stack(void) {
    static const struct { const char *limit; int code; } cases[] = {{"-s 64", 4}, {"-s 256", 4}, {"-S -s 64", 0}, {"-s 512", 0}};
    char command[900];
    check_case("a stack that is too small is an error, or is enlarged if allowed");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 2; k++) {
            snprintf(command, sizeof command, "ulimit %s; '%s' %s >'%s/stdout' 2>'%s/stderr'", cases[i].limit, program,
                     k ? "run samples/cat.jpg -p What --synthetic tiny --threads 2" : "info", folder, folder);
            int status = system(command);
            CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -1, cases[i].code);
            free(last.err);
            last.err = check_read(in_folder("stderr"), NULL);
            if (cases[i].code) SAYS("raise the limit (ulimit -s)");
        }
}

int main(void) {
    if (!command_begin("hardening")) return 1;
    setenv("OPENAI_API_KEY", KEY, 1);
    chat_start(&server);
    RUN_TESTS(test_pictures, test_warm_up, test_sent, test_terminal, test_lines, test_links, test_stack);
    hostile_stop(&server);
    return command_end("test_hardening");
}
