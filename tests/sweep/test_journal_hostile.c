/* slow: each line of a journal damaged in each way, 15 s */
/* test_journal_hostile.c: a changed journal: each key of each kind of line renamed and removed, each value replaced, lines torn, doubled, swapped, deleted,
 * mixed with those of another plan, bytes that are not text. Each line is either whole or damaged. A damaged one is reported with its place and measured again, nothing
 * crashes, and the results become those of the unbroken sweep. Most journals are read in this process, some by $PROGRAM (default ./vlmprof). Files are in a temporary
 * folder. */
#define _POSIX_C_SOURCE 200809L
#include "sweep/journal.h"
#include "base/console.h"
#include "support/command.h"
#include "support/chat_server.h"
#include "support/room.h"
#include "support/same_results.h"
#include "sweep/ranks.h"

#define SWEEP \
    "sweep --synthetic tiny --data %F/set.jsonl --tier_list low --top_k_list 1 2 --num_runs_per_sample 2 --max_new_tokens 2 --bare_every 2 " \
    "--kernel_pass --quiet "
enum { PAD = 80, LINES = 64 };

/* ---- the journal from which all others are made. Each line ends with blanks, so that a longer value moves no other line. */
static struct line { char *text; size_t bytes; long long at; } lines[LINES];
static int line_count;
static const char *const kinds[] = {"{\"schema\"", "{\"session\"", "{\"sample\"", "\"run\": 1", "\"bare\"", "\"done\"", "\"failed\"", "{\"kernels\"", "{\"finished\"",
    "{\"noise\"", "\"twins\": {"};
enum { KINDS = 11, ENGINE_KINDS = KINDS - 1 };
/* the last line of a kind: few lines follow it, and those before it stay unchanged */
static int line_of_kind(int kind) {
    for (int i = line_count - 1; i >= 0; i--)
        if (kinds[kind][0] == '{' ? !strncmp(lines[i].text, kinds[kind], strlen(kinds[kind])) : strstr(lines[i].text, kinds[kind]) != NULL) return i;
    return -1;
}
/* `"KEY": OFFSET` becomes the current offset of that line */
static void move_place(char *text, const char *key, const long long *before) {
    char *at = strstr(text, key), *end;
    long long place = at ? strtoll(at + strlen(key), &end, 10) : -1;
    if (place < 0 || end == at + strlen(key)) return;
    char *rest = copy_text(end, strlen(end));
    for (int i = 0; i < line_count; i++)
        if (before[i] == place) sprintf(at + strlen(key), "%lld%s", lines[i].at, rest);
    free(rest);
}
/* Removes the checksums from a journal's lines, as if an older version had written them, so that tests reach the lines' content. */
static void remove_sums(char *text) {
    char *to = text;
    for (const char *from = text; *from;) {
        if (strncmp(from, ", \"sum\": \"", 10) != 0) *to++ = *from++;
        else from += strlen(", \"sum\": \"0123456789abcdef\"");
    }
    *to = 0;
}
static void read_lines(const char *path) {
    char *text = check_read(path, NULL);
    long long before[LINES], at = 0;
    long long places[LINES];
    int place_count = 0;
    for (char *p = text, *end; p && place_count < LINES && (end = strchr(p, '\n')) != NULL; p = end + 1) places[place_count++] = p - text;
    if (text) remove_sums(text);
    for (char *p = text, *end; p && line_count < LINES && (end = strchr(p, '\n')) != NULL; p = end + 1) {
        struct line *line = &lines[line_count];
        before[line_count] = places[line_count];
        line_count++;
        line->bytes = (size_t)(end - p) + PAD;
        line->text = (char *)calloc(line->bytes + PAD, 1);
        memcpy(line->text, p, (size_t)(end - p));
        line->at = at;
        at += (long long)line->bytes + 1;
    }
    for (int i = 0; i < line_count; i++) {
        move_place(lines[i].text, "\"prev\": ", before);
        move_place(lines[i].text, "\"session\": ", before);
        move_place(lines[i].text, "\"from\": ", before);
        for (size_t bytes = strlen(lines[i].text); bytes < lines[i].bytes; bytes++) lines[i].text[bytes] = ' ';
    }
    free(text);
}
/* ---- a journal with one change */
static struct text_buffer journal;
/* writes all lines; line `changed` is replaced by `bytes` bytes, padded with blanks to its length */
static void write_changed(int changed, const char *text, size_t bytes) {
    static const char blanks[] = "                                                                                                                        ";
    journal.bytes = 0;
    for (int i = 0; i < line_count; i++) {
        if (i != changed) text_add(&journal, lines[i].text, lines[i].bytes);
        else {
            text_add(&journal, text, bytes);
            while (bytes < lines[i].bytes) {
                size_t more = lines[i].bytes - bytes < sizeof blanks - 1 ? lines[i].bytes - bytes : sizeof blanks - 1;
                text_add(&journal, blanks, more);
                bytes += more;
            }
        }
        text_add(&journal, "\n", 1);
    }
}
/* Reads the journal in this process and writes its result files. Returns the code of reading; room_said has the messages. */
static int read_journal(void) {
    struct journal_index index = {0};
    struct summaries results = {NULL, 0};
    make_empty(in_folder("room"));
    write_file(in_folder("room/journal.jsonl"), journal.data, journal.bytes);
    listen_begin();
    int code = ranks_read_folder(&index, in_folder("room"), NULL);
    int written = code ? 0 : ranks_merge(&index, in_folder("room"), 1, &results);
    listen_end();
    check_note(code == 0 || code == EXIT_USAGE, __FILE__, __LINE__, "code %d: %s", code, room_said);
    check_note(written == 0, __FILE__, __LINE__, "no results, code %d: %s", written, room_said);
    summaries_free(&results);
    index_free(&index);
    return code;
}
static int is_named(int line) {
    char words[60];
    snprintf(words, sizeof words, "line %d (byte %lld) is ", line + 1, lines[line].at);
    return strstr(room_said, words) != NULL;
}

/* ---- each key and value of a line */
static const char *const values[] = {"null", "true", "false", "7", "-1", "0", "0.5", "1e300", "9223372036854775807", "99999999999999999999999", "\"x\"", "\"\"",
                                     "\"\\u0000\"", "\"../../x_imgsize\"", "[]", "[1]", "[[], {}]", "{}", "{\"a\": 1}"};
/* Parts of a line whose content is from the user or the machine, where any key is allowed. */
static int is_open_part(const char *key) {
    static const char *const keys[] = {"options", "metadata", "cold", "gpu", "clocks", "telemetry", "parts", "session", "request_knobs", "family_keys", "timings"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(key, keys[i])) return 1;
    return 0;
}
static void check_changed(int line, const char *text, size_t bytes, int must_be_named, const char *what) {
    if (bytes > lines[line].bytes) return; /* it would move the lines after it; another test does that */
    write_changed(line, text, bytes);
    int code = read_journal();
    if (line == 0) check_note(!must_be_named || code == EXIT_USAGE, __FILE__, __LINE__, "%s: code %d", what, code);
    else if (code == 0)
        check_note(!must_be_named || is_named(line), __FILE__, __LINE__, "%s of line %d is not reported: %s", what, line + 1, room_said);
}
/* Renames and removes the member at `key`, and changes its value. can_lack: another line of this kind lacks this member. */
static void change_member(int line, const vp_json *json, uint32_t object, uint32_t key, int is_open, int can_lack) {
    const char *text = lines[line].text;
    const vp_json_node *name = &json->nodes[key], *value = &json->nodes[key + 1];
    size_t quotes = value->type == VP_JSON_STRING, first = (size_t)name->start - 1, from = (size_t)value->start - quotes,
           after = from + (size_t)value->bytes + 2 * quotes, end = lines[line].bytes;
    char *made = (char *)malloc(end + 200), what[200];
    snprintf(what, sizeof what, "\"%.*s\"", (int)name->bytes, text + name->start);
    memcpy(made, text, end);
    made[name->start] = 'Z';
    check_changed(line, made, end, !is_open, what); /* renamed */
    {
        size_t rest = after, start = first;
        if (text[rest] == ',') rest += 2;
        else if (json->nodes[object].count > 1) start -= 2;
        memcpy(made, text, start);
        memcpy(made + start, text + rest, end - rest);
        check_changed(line, made, end - (rest - start), !is_open && !can_lack, what); /* removed */
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        size_t bytes = strlen(values[i]), used = strlen(text) ? end : 0;
        while (used > after && text[used - 1] == ' ') used--;
        memcpy(made, text, from);
        memcpy(made + from, values[i], bytes);
        memcpy(made + from + bytes, text + after, used - after);
        check_changed(line, made, used - after + from + bytes, 0, what);
    }
    free(made);
}
static void change_members(int line, const vp_json *json, uint32_t node, int is_open, int can_lack) {
    if (json->nodes[node].type == VP_JSON_ARRAY)
        for (uint32_t i = node + 1; i < json->nodes[node].end; i = json->nodes[i].end) change_members(line, json, i, is_open, 0);
    if (json->nodes[node].type != VP_JSON_OBJECT) return;
    for (uint32_t key = node + 1; key < json->nodes[node].end; key = json->nodes[key + 1].end) {
        char name[80];
        snprintf(name, sizeof name, "%.*s", (int)json->nodes[key].bytes, json->text + json->nodes[key].start);
        /* older journals lack the model's shape, a configuration's weights, the client's delay, and the first parts of twins' streams */
        change_member(line, json, node, key, is_open, can_lack || !strcmp(name, "model_shape") || !strcmp(name, "architecture") || !strcmp(name, "weights")
                          || !strcmp(name, "delay_ns") || !strcmp(name, "image_chunk_ms") || !strcmp(name, "text_chunk_ms"));
        change_members(line, json, key + 1, is_open || is_open_part(name), !strcmp(name, "stages")); /* the stages that ran */
    }
}
static void test_members(int is_served) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    for (int kind = 0; kind < (is_served ? KINDS : ENGINE_KINDS); kind++) {
        int line = line_of_kind(kind);
        if (line < 0 && is_served) continue; /* only engines have kernels and runs without stage times */
        check_case("%seach key and value of a line with %s", is_served ? "of a server: " : "", kinds[kind]);
        if (!CHECK(line >= 0) || !CHECK_INT(parse_json(&parsed, lines[line].text, lines[line].bytes, NULL), VP_OK)) continue;
        change_members(line, &parsed.json, 0, 0, 0);
    }
    free(parsed.nodes);
}
/* The lines of a sweep of a server. */
static void test_served(void) {
    hostile_server server;
    char command[500];
    for (int i = 0; i < line_count; i++) free(lines[i].text);
    line_count = 0;
    check_case("a sweep of a server: the unbroken one");
    chat_start(&server);
    snprintf(command, sizeof command, "sweep --endpoint http://127.0.0.1:%d --endpoint_model model-a --request_knob image_url.detail=low,high "
                                      "--data %%F/set.jsonl --tier_list low --num_runs_per_sample 2 --max_new_tokens 2 --twins 1 "
                                      "--quiet --output_dir %%F/served", server.port);
    CHECK_INT(cli(command), 1);
    hostile_stop(&server);
    read_lines(in_folder("served/journal.jsonl"));
    CHECK(line_count > 15 && line_count < LINES);
    write_changed(-1, NULL, 0);
    CHECK_INT(read_journal(), 0);
    CHECK_TEXT(room_said, "");
    same_results(in_folder("served"), in_folder("room"));
    test_members(1);
}
/* ---- bytes */
static void test_bytes(void) {
    static const char bytes[] = {0, '\xff', '\xc0', '\n', '"', '\\', '{', '}', ','};
    check_case("bytes that are not text, at many positions in each kind of line");
    for (int kind = 0; kind < ENGINE_KINDS; kind++) {
        int line = line_of_kind(kind);
        size_t step = lines[line].bytes / 40 + 1;
        char *made = (char *)malloc(lines[line].bytes);
        for (size_t at = 0; at + PAD < lines[line].bytes; at += step)
            for (size_t i = 0; i < sizeof bytes; i++) {
                memcpy(made, lines[line].text, lines[line].bytes);
                made[at] = bytes[i];
                check_changed(line, made, lines[line].bytes, i < 3, "a byte");
            }
        free(made);
    }
    check_case("torn lines: at the end of the file, or followed by the next line");
    for (int kind = 0; kind < ENGINE_KINDS; kind++) {
        int line = line_of_kind(kind);
        size_t start = (size_t)lines[line].at;
        for (size_t cut = 0; cut + PAD < lines[line].bytes; cut += lines[line].bytes / 25 + 1) {
            write_changed(-1, NULL, 0);
            memmove(journal.data + start + cut, journal.data + start + lines[line].bytes, journal.bytes - start - lines[line].bytes);
            journal.bytes -= lines[line].bytes - cut;
            read_journal();
            write_changed(-1, NULL, 0);
            journal.bytes = start + cut;
            if (line || cut) read_journal();
        }
    }
}
/* ---- order */
/* Writes all lines in this order, with `more` before line `place`. */
static void write_order(const int *order, int count, int place, const char *more) {
    journal.bytes = 0;
    for (int i = 0; i < count; i++) {
        if (i == place && more) text_add_string(&journal, more);
        text_add(&journal, lines[order[i]].text, lines[order[i]].bytes);
        text_add(&journal, "\n", 1);
    }
}
/* Changes the order: line `line` is doubled (0), swapped with the next (1), deleted (2), or moved to the end (3). Returns the number of lines. */
static int change_order(int *order, int line, int how) {
    int count = 0;
    for (int i = 0; i < line_count; i++) {
        if (i != line || how == 0) order[count++] = i;
        if (i == line && how == 0) order[count++] = i;
        if (i == line + 1 && how == 1) order[count++] = line;
    }
    if (how == 3) order[count++] = line;
    return count;
}
static const char foreign[] = "{\"config\": \"other_imgsizetier-low_crops1_topk1_blocks4.json\", \"sample_id\": 0, \"prev\": -1, \"done\": 1}\n{\"plan\": 1}\n";
static void test_order(void) {
    int order[LINES + 2];
    check_case("each line doubled, swapped, deleted, or moved to the end; lines of another plan before it");
    for (int line = 0; line < line_count; line++) {
        for (int how = 0; how < 4; how++) {
            int count = change_order(order, line, how);
            write_order(order, count, -1, NULL);
            read_journal();
        }
        write_order(order, change_order(order, line_count, 2), line, foreign);
        CHECK_INT(read_journal(), line ? 0 : EXIT_USAGE);
    }
    check_case("the head of another plan is rejected, at any position");
    for (int line = 0; line < line_count; line += 5) {
        char *head = copy_text(lines[0].text, lines[0].bytes);
        head[lines[0].bytes - 1] = '\n';
        memcpy(strstr(head, "\"plan\": \"") + 9, "0123456789abcdef", 16);
        write_order(order, change_order(order, line_count, 2), line, head);
        CHECK_INT(read_journal(), EXIT_USAGE);
        CHECK(strstr(room_said, "belongs to another plan") != NULL);
        free(head);
    }
}
/* ---- the program */
/* Number of entries of "kernel_pass" in all result files of a folder. */
static int count_kernels(const char *name) {
    DIR *opened = opendir(in_folder(name));
    struct dirent *entry;
    int count = 0;
    while (opened && (entry = readdir(opened)) != NULL) {
        char path[1000];
        document d;
        if (!strstr(entry->d_name, "_imgsize")) continue;
        snprintf(path, sizeof path, "%s/%s", in_folder(name), entry->d_name);
        if (CHECK(load(&d, path))) count += (int)d.nodes[member(&d, 0, "kernel_pass")].count;
        unload(&d);
    }
    if (opened) closedir(opened);
    return count;
}
/* Sweeps over the changed journal, then merges. The results are those of the unbroken sweep, and the next sweep reports only old lines. */
static void check_program(const char *what, int line) {
    char words[400];
    make_empty(in_folder("out"));
    write_file(in_folder("out/journal.jsonl"), journal.data, journal.bytes);
    cli("merge %F/out --quiet");
    check_note(last.code == 1 || (line == 0 && last.code == 2), __FILE__, __LINE__, "merge, %s of line %d: exit %d: %s", what, line + 1, last.code, last.err);
    cli(SWEEP "--output_dir %F/out");
    if (last.code == 2) { /* the head of the whole journal, which does not change */
        size_t bytes = 0;
        char *text = check_read(in_folder("out/journal.jsonl"), &bytes);
        check_note(line == 0 && strstr(last.err, "journal.jsonl is not a journal"), __FILE__, __LINE__, "sweep, %s of line %d: %s", what, line + 1, last.err);
        CHECK(text && bytes == journal.bytes && !memcmp(text, journal.data, bytes));
        free(text);
        return;
    }
    check_note(last.code == 1, __FILE__, __LINE__, "sweep, %s of line %d: exit %d: %s", what, line + 1, last.code, last.err);
    snprintf(words, sizeof words, "%s/out/journal.jsonl: line ", folder);
    check_note(line == line_count - 1 || strstr(last.err, words) != NULL, __FILE__, __LINE__, "%s of line %d is not reported: %s", what, line + 1, last.err);
    same_results(in_folder("whole"), in_folder("out"));
    check_note(count_kernels("out") == count_kernels("whole"), __FILE__, __LINE__, "%s of line %d: %d timed shapes", what, line + 1, count_kernels("out"));
    cli("merge %F/out --quiet");
    CHECK_INT(last.code, 1);
    same_results(in_folder("whole"), in_folder("out"));
}
static void test_program(void) {
    int order[LINES + 2];
    for (int kind = 0; kind < ENGINE_KINDS; kind++) {
        int line = line_of_kind(kind);
        char *made = copy_text(lines[line].text, lines[line].bytes);
        check_case("the program on a changed line with %s", kinds[kind]);
        made[2] = 'Z'; /* its first key */
        write_changed(line, made, lines[line].bytes);
        check_program("a renamed key", line);
        write_changed(line, made, lines[line].bytes / 3);
        check_program("half the text", line);
        free(made);
        if (line == 0) continue;
        write_order(order, change_order(order, line, 0), -1, NULL);
        if (kind != 1) check_program("a double", line); /* a session that appears twice is not damaged */
        write_order(order, change_order(order, line_count, 2), line, foreign);
        check_program("a foreign line", line);
    }
    check_case("the key \"metadata\" of a sample's line, renamed without changing its length");
    write_changed(-1, NULL, 0);
    memcpy(strstr(journal.data, "\"metadata\""), "\"metadatA\"", 10);
    check_program("metadata", 1);
}

int main(void) {
    size_t bytes = 0;
    char *image, text[2000];
    if (!command_begin("journal_hostile")) return 1;
    check_case("the unbroken sweep");
    image = check_read(check_golden("images/img-90x90.png"), &bytes);
    if (!CHECK(image != NULL)) return 1;
    write_file(in_folder("a.png"), image, bytes);
    write_file(in_folder("broken.png"), image, bytes / 2);
    free(image);
    snprintf(text, sizeof text, "{\"id\": 1, \"image\": \"a.png\", \"question\": \"What?\", \"answers\": [\"bus\", \"car\"]}\n"
                                "{\"id\": 2, \"image\": \"broken.png\", \"question\": \"And?\"}\n{\"question\": \"Words?\", \"answers\": []}\n");
    write_text(in_folder("set.jsonl"), text);
    setenv("VLMPROF_TEST_SYSTEM", folder, 1);
    make_empty(in_folder("proc")); /* only the system's load is known: each round of runs is one block */
    write_text(in_folder("proc/loadavg"), "0.5 0 0 1/2 3\n");
    CHECK_INT(cli(SWEEP "--output_dir %F/whole"), 1);
    read_lines(in_folder("whole/journal.jsonl"));
    CHECK(line_count > 15 && line_count < LINES);
    write_changed(-1, NULL, 0);
    CHECK_INT(read_journal(), 0);
    CHECK_TEXT(room_said, "");
    same_results(in_folder("whole"), in_folder("room"));
    test_members(0);
    RUN_TESTS(test_bytes, test_order, test_program, test_served);
    for (int i = 0; i < line_count; i++) free(lines[i].text);
    FREE_ALL(journal.data, room_said);
    room_said = NULL;
    return command_end("test_journal_hostile");
}
