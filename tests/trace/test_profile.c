/* The profiler's commands: `vlmprof trace` on a trace of torch.profiler, compared with torch's numbers; on hand-made traces with known answers; and on damaged ones.
 * PROGRAM names the program (default ./vlmprof). */
#define _POSIX_C_SOURCE 200809L
#include "support/check.h"
#include "support/program.h"
#include "vlmprof_json.h"

/* ---- CSV */
enum { CELLS_MAX = 40 };
typedef struct csv_row { char *cells[CELLS_MAX]; int count; } csv_row;
/* Splits one line in place and removes quotes. Returns the start of the next line; NULL at the end. */
static char *csv_split(char *p, csv_row *row) {
    row->count = 0;
    if (!p || !*p) return NULL;
    for (;;) {
        char *out = p, *begin = p;
        int quoted = *p == '"';
        p += quoted;
        begin += quoted;
        out = begin;
        while (*p && (quoted || (*p != ',' && *p != '\n'))) {
            if (quoted && *p == '"') {
                if (p[1] != '"') { p++; break; }
                p++;
            }
            *out++ = *p++;
        }
        if (row->count < CELLS_MAX) row->cells[row->count++] = begin;
        if (*p == ',') { *out = 0; p++; continue; }
        if (*p == '\n') p++;
        *out = 0;
        return p;
    }
}
typedef struct csv { char *text; csv_row head, rows[400]; int count; } csv;
static void csv_read(csv *t, const char *text) {
    char *p = strdup(text ? text : "");
    csv_row row;
    t->text = p; t->count = 0;
    p = csv_split(p, &t->head);
    while (t->count < 400 && (p = csv_split(p, &row)) != NULL) t->rows[t->count++] = row;
}
#define RUNS_CSV(t, ...) (CHECK_INT(run(__VA_ARGS__), 0), csv_read(t, last.out))
static const char *csv_cell(const csv *t, const csv_row *row, const char *column) {
    for (int i = 0; row && i < t->head.count && i < row->count; i++) if (!strcmp(t->head.cells[i], column)) return row->cells[i];
    return "(no such cell)";
}
static const csv_row *csv_find(const csv *t, const char *name) {
    for (int i = 0; i < t->count; i++) if (!strcmp(t->rows[i].cells[0], name)) return &t->rows[i];
    return NULL;
}
static const csv_row *csv_find_shaped(const csv *t, const char *name, const char *shape) {
    for (int i = 0; i < t->count; i++)
        if (!strcmp(t->rows[i].cells[0], name) && !strcmp(csv_cell(t, &t->rows[i], "shape"), shape)) return &t->rows[i];
    return NULL;
}
static double row_number(const csv *t, const csv_row *row, const char *column) {
    const char *text = csv_cell(t, row, column);
    char *end;
    double value = strtod(text, &end);
    return end == text || *end ? (double)NAN : value; /* NaN fails every check */
}
static double cell_number(const csv *t, const char *name, const char *column) { return row_number(t, csv_find(t, name), column); }

/* ---- compared with torch */
/* Every row of torch's table is in ours and vice versa: calls and bytes are equal, times agree within the loss from three decimals of us. */
static void test_torch(const char *golden, const char *options, int shapes) {
    static csv ours, torch;
    char path[600];
    const char *file = check_golden(golden);
    snprintf(path, sizeof path, "%s", file ? file : "");
    check_case("trace agrees with torch's key_averages, %s", golden);
    char *text = text_of_file(path);
    csv_read(&torch, text);
    CHECK(torch.count > 50);
    RUNS_CSV(&ours, "trace %s --csv %s", check_golden("trace/torch_cpu.pt.trace.json"), options);
    CHECK_INT(ours.count, torch.count);
    for (int i = 0; i < torch.count; i++) {
        const csv_row *told = &torch.rows[i];
        const char *name = told->cells[0], *shape = shapes ? csv_cell(&torch, told, "shapes") : "";
        const csv_row *row = csv_find_shaped(&ours, name, shape);
        if (!check_note(row != NULL, __FILE__, __LINE__, "%s %s is missing", name, shape)) continue;
        CHECK_NEAR(row_number(&ours, row, "calls"), strtod(csv_cell(&torch, told, "calls"), NULL), 0);
        CHECK_NEAR(row_number(&ours, row, "host_self_ns"), 1e3 * strtod(csv_cell(&torch, told, "self_cpu_us"), NULL), 1.01);
        CHECK_NEAR(row_number(&ours, row, "host_total_ns"), 1e3 * strtod(csv_cell(&torch, told, "cpu_us"), NULL), 1.01);
        CHECK_NEAR(row_number(&ours, row, "host_memory_bytes"), strtod(csv_cell(&torch, told, "cpu_bytes"), NULL), 0);
        CHECK_NEAR(row_number(&ours, row, "host_self_memory_bytes"), strtod(csv_cell(&torch, told, "self_cpu_bytes"), NULL), 0);
    }
    FREE_ALL(torch.text, ours.text, text);
}
/* The table as text has the same rows as torch's, in the same order. */
static void test_torch_text(void) {
    char *torch = text_of_file(check_golden("trace/torch_cpu.txt"));
    const char *ours, *want = torch;
    check_case("trace prints the same table as torch");
    CHECK_INT(run("trace %s --table ops --sort_by self_cpu_time_total --row_limit 12", check_golden("trace/torch_cpu.pt.trace.json")), 0);
    ours = last.out;
    for (int line = 0; want && *want && line < 17; line++) { /* up to "CPU total"; averages of two calls round differently at ties */
        size_t bytes = strcspn(want, "\n"), same = bytes < 110 ? bytes : 110;
        check_note(!strncmp(want, ours, same), __FILE__, __LINE__, "line %d is \"%.110s\"", line, ours);
        want += bytes + 1;
        ours += strcspn(ours, "\n") + 1;
    }
    free(torch);
}
/* Input shapes have a separate field in text, JSON and CSV. */
static void test_shapes(void) {
    const char *golden = check_golden("trace/torch_cpu.pt.trace.json");
    check_case("input shapes are in a separate field");
    CHECK_INT(run("trace %s --table ops --group_by_input_shape --row_limit 6", golden), 0);
    CHECK(strstr(last.out, "# of Calls") && strstr(last.out, "    Input Shapes  \n") && strstr(last.out, "                               aten::mkldnn_convolution  "));
    CHECK(strstr(last.out, "  [[2, 3, 8, 8], [8, 3, 3, 3], [8], [], [], [], []]  \n"));
    CHECK_INT(run("trace %s --json --group_by_input_shape", golden), 0);
    CHECK(strstr(last.out, "\"name\": \"aten::gelu\"") && strstr(last.out, "\"shape\": [[2, 32], []]") && !strstr(last.out, "aten::gelu ["));
    check_case("shapes are on one line, whatever white space the trace has; anything but a list of lists is ignored");
    write_text(in_folder("blanks.json"),
               "{\"traceEvents\":[\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":9,\"args\":{\"Input Dims\":[[2,\n3],[ ]]}},\n"
               "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":10,\"dur\":9,\"args\":{\"Input Dims\":[[2, 3], []]}},\n"
               "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":20,\"dur\":9,\"args\":{\"Input Dims\":\"none\"}},\n"
               "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":30,\"dur\":9,\"args\":{\"Input Dims\":[]}}]}");
    CHECK_INT(run("trace %%F/blanks.json --csv --group_by_input_shape"), 0);
    CHECK(strstr(last.out, "\na,,,,,\"[[2, 3], []]\",,,,2,") && strstr(last.out, "\nb,,,,,[],,,,2,"));
}

/* ---- a trace with known answers, which tests several things on one stream */
static const char KNOWN[] =
    "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H100\"}], \"distributedInfo\": {\"rank\": 1, \"world_size\": 4},\n"
    "\"traceEvents\": [\n"
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#3\",\"pid\":10,\"tid\":10,\"ts\":100,\"dur\":100,\"args\":{\"External id\":1}},\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"mm\",\"pid\":10,\"tid\":10,\"ts\":\"110.5\",\"dur\":20.25,\"args\":{\"External id\":2}},\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::is_leaf\",\"pid\":10,\"tid\":10,\"ts\":111,\"dur\":1},\n"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":10,\"tid\":99,\"ts\":115,\"dur\":5,"
    "\"args\":{\"External id\":2,\"correlation\":7}},\n"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":10,\"tid\":10,\"ts\":150,\"dur\":5,\"args\":{\"correlation\":8}},\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"detach\",\"pid\":10,\"tid\":10,\"ts\":160,\"dur\":10,\"args\":{\"External id\":3}},\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"detach\",\"pid\":10,\"tid\":10,\"ts\":161,\"dur\":8,\"args\":{\"External id\":4}},\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"view\",\"pid\":10,\"tid\":10,\"ts\":162,\"dur\":2.5},\n"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm \\\"x\\\"\",\"pid\":0,\"tid\":7,\"ts\":125,\"dur\":10,"
    "\"args\":{\"External id\":2,\"correlation\":7,\"stream\":7}},\n"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"softmax\",\"pid\":0,\"tid\":7,\"ts\":160,\"dur\":10.001,\"args\":{\"correlation\":8}},\n"
    "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD\",\"pid\":0,\"tid\":7,\"ts\":170.011,\"dur\":5,\"args\":{\"correlation\":9,\"bytes\":1000}},\n"
    "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"stage::vision\",\"pid\":0,\"tid\":7,\"ts\":124.999,\"dur\":50.013,\"args\":{\"External id\":1}},\n"
    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":7,\"args\":{\"name\":\"stream 7\"}},\n"
    "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":10,\"tid\":10,\"ts\":112,"
    "\"args\":{\"Bytes\":512,\"Total Allocated\":1536,\"Total Reserved\":2048,\"Device Type\":1,\"Device Id\":0}},\n"
    "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":10,\"tid\":10,\"ts\":300,"
    "\"args\":{\"Bytes\":-512,\"Total Allocated\":1024,\"Total Reserved\":2048,\"Device Type\":1,\"Device Id\":0}}\n"
    "], \"traceName\": \"x\"}";
static void test_known(void) {
    static csv t;
    static char piped[1600];
    const char *kept = program;
    write_text(in_folder("known.json"), KNOWN);
    check_case("operations: nesting, repeats, hidden ones, device time by External id and by launch, memory");
    RUNS_CSV(&t, "trace %%F/known.json --csv");
    CHECK_INT(t.count, 7);
    CHECK_NEAR(cell_number(&t, "[device work outside any operation]", "device_self_ns"), 5000, 0);
    CHECK_NEAR(cell_number(&t, "ProfilerStep*", "host_total_ns"), 100000, 0);
    CHECK_NEAR(cell_number(&t, "ProfilerStep*", "host_self_ns"), 100000 - 20250 - 5000 - 10000, 0);
    CHECK_NEAR(cell_number(&t, "ProfilerStep*", "device_total_ns"), 20001, 0);
    CHECK_NEAR(cell_number(&t, "ProfilerStep*", "device_self_ns"), 10001, 0); /* launched outside all operations except the step */
    CHECK_NEAR(cell_number(&t, "mm", "host_self_ns"), 15250, 0); /* its launch was recorded on another thread */
    CHECK_NEAR(cell_number(&t, "mm", "device_total_ns"), 10000, 0);
    CHECK_NEAR(cell_number(&t, "mm", "device_memory_bytes"), 512, 0);
    CHECK_NEAR(cell_number(&t, "cudaLaunchKernel", "calls"), 2, 0);
    CHECK_NEAR(cell_number(&t, "detach", "calls"), 1, 0);
    CHECK_NEAR(cell_number(&t, "detach", "host_total_ns"), 10000, 0);
    CHECK_NEAR(cell_number(&t, "detach", "host_self_ns"), 7500, 0);
    CHECK_NEAR(cell_number(&t, "view", "host_self_ns"), 2500, 0);
    CHECK_NEAR(cell_number(&t, "[memory]", "device_memory_bytes"), -512, 0);
    free(t.text);
    check_case("annotations: busy and idle time");
    RUNS_CSV(&t, "trace %%F/known.json --csv --table annotations");
    CHECK_NEAR(cell_number(&t, "stage::vision", "total_us"), 50.013, 1e-9);
    CHECK_NEAR(cell_number(&t, "stage::vision", "busy_us"), 25.001, 1e-9);
    CHECK_NEAR(cell_number(&t, "ProfilerStep*", "busy_us"), 35.25, 1e-9);
    free(t.text);
    check_case("kernels, launches, streams, memory");
    RUNS_CSV(&t, "trace %%F/known.json --csv --table kernels");
    CHECK_INT(t.count, 3);
    CHECK_NEAR(cell_number(&t, "gemm \"x\"", "total_us"), 10, 0);
    CHECK_NEAR(cell_number(&t, "Memcpy HtoD", "bytes"), 1000, 0);
    CHECK_TEXT(csv_cell(&t, csv_find(&t, "softmax"), "busy_us"), "");
    free(t.text);
    RUNS_CSV(&t, "trace %%F/known.json --csv --table tracks");
    CHECK_NEAR(cell_number(&t, "stream 7", "total_us"), 50.011, 1e-9);
    CHECK_NEAR(cell_number(&t, "stream 7", "idle_us"), 25.01, 1e-9);
    CHECK_NEAR(cell_number(&t, "stream 7", "host_wait_us"), 25, 1e-9);   /* the second launch was 15 us after the first kernel's end */
    CHECK_NEAR(cell_number(&t, "stream 7", "kernel_wait_us"), 0.01, 1e-9);
    CHECK_NEAR(cell_number(&t, "stream 7", "queue_most"), 1, 0);
    CHECK_NEAR(cell_number(&t, "stream 7", "queue_mean"), 20.0 / 45.0, 1e-9); /* 115..125 and 150..160 of 115..160 */
    free(t.text);
    CHECK_INT(run("trace %%F/known.json --csv --table memory"), 0);
    CHECK_TEXT(last.out, "device,changes,most_allocated_bytes,most_reserved_bytes,left_bytes,at_us\ndevice 0,2,1536,2048,0,12.000\n");
    check_case("the same as text and as JSON");
    snprintf(piped, sizeof piped, "sh -c 'cat \"$TEST_FOLDER/known.json\" | %s \"$@\"' sh", program);
    program = piped;
    CHECK_INT(run("trace - --json"), 0);
    program = kept;
    CHECK(strstr(last.out, "\"rank\": 1,") && strstr(last.out, "\"devices\": \"NVIDIA H100\"") && strstr(last.out, "\"file\": \"stdin\""));
    CHECK(strstr(last.out, "\"device_slices_without_launch\": 1") && strstr(last.out, "\"p50\": 5.0"));
    EXITS(run("trace %%F/known.json"), 0, out, "launch delay, from the end of the call to the start on the device: mean 5.000us");
    CHECK(strstr(last.out, "Self CUDA time total: 25.001us"));
    CHECK_TEXT(last.err, "");
}
/* HTA compares its 30 with us, despite its documentation: on this trace, HTA 0.5.0 gives host_wait 0, kernel_wait 20 and other 40. */
static void test_gaps(void) {
    static csv t;
    check_case("kernel wait: gaps below 30 us if the next launch was already waiting, as HTA counts them");
    write_text(in_folder("gaps.json"),
               "{\"traceEvents\":[\n"
               "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":1,\"args\":{\"correlation\":1}},\n"
               "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":1,\"args\":{\"correlation\":2}},\n"
               "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":4,\"dur\":1,\"args\":{\"correlation\":3}},\n"
               "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"pid\":0,\"tid\":7,\"ts\":10,\"dur\":10,\"args\":{\"correlation\":1,\"stream\":7}},\n"
               "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"b\",\"pid\":0,\"tid\":7,\"ts\":40,\"dur\":10,\"args\":{\"correlation\":2,\"stream\":7}},\n"
               "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"c\",\"pid\":0,\"tid\":7,\"ts\":90,\"dur\":10,\"args\":{\"correlation\":3,\"stream\":7}}]}");
    RUNS_CSV(&t, "trace %%F/gaps.json --csv --table tracks");
    CHECK_NEAR(cell_number(&t, "0 7", "idle_us"), 60, 1e-9);
    CHECK_NEAR(cell_number(&t, "0 7", "host_wait_us"), 0, 0);
    CHECK_NEAR(cell_number(&t, "0 7", "kernel_wait_us"), 20, 1e-9);
    free(t.text);
    check_case("each table as text explains its times");
    CHECK_INT(run("trace %%F/gaps.json"), 0);
    CHECK(strstr(last.out, "times are sums over the calls") && strstr(last.out, "max: call durations") && strstr(last.out, "other gaps below 30 us"));
    EXITS(run("trace %%F/known.json --table annotations"), 0, out, "total: sum over the calls; avg: total / calls; busy: ");
}

/* ---- unusual but valid */
static void test_odd(void) {
    static csv t;
    check_case("slices that overlap without nesting, negative and numeric-string times, exponents, missing members");
    write_text(in_folder("odd.json"),
               "[{\"ph\":\"X\",\"name\":\"outer\",\"ts\":-10,\"dur\":\"20\"}, {\"ph\":\"X\",\"name\":\"a\",\"ts\":-10,\"dur\":19},\n"
               "{\"ph\":\"X\",\"name\":\"b\",\"ts\":-9,\"dur\":1.9e1},{\"ph\":\"X\",\"name\":\"no dur\",\"ts\":1},{\"ph\":\"X\",\"ts\":1,\"dur\":1},\n"
               "{\"ph\":\"X\",\"name\":\"bad\",\"ts\":\"NaN\",\"dur\":1},{\"ph\":\"X\",\"name\":\"long\",\"ts\":1,\"dur\":1e300},{\"ph\":\"B\",\"name\":\"b\"},\n"
               "{\"ph\":\"X\",\"name\":\"back\",\"ts\":1,\"dur\":-1},{},{\"ph\":7},{\"ph\":\"X\",\"name\":7,\"ts\":1,\"dur\":1,\"args\":[1]}]\n");
    RUNS_CSV(&t, "trace %%F/odd.json --csv");
    CHECK_INT(t.count, 3);
    CHECK_NEAR(cell_number(&t, "outer", "host_self_ns"), 0, 0); /* a and b cover it; time covered by both counts once */
    CHECK_NEAR(cell_number(&t, "a", "host_self_ns"), 19000, 0);
    CHECK_NEAR(cell_number(&t, "b", "host_self_ns"), 19000, 0);
    free(t.text);
    EXITS(run("trace %%F/odd.json"), 0, out, "left out  1 without dur, 3 whose ts or dur is not a number in range, 2 without a name, 2 of another kind");
    CHECK(strstr(last.out, "not read  1 events that begin or end a slice (B, E)"));
    CHECK(strstr(last.out, "overlaps  1 slices"));
    check_case("an empty trace has a summary but no tables");
    write_text(in_folder("empty.json"), "{\"traceEvents\": []}");
    CHECK_INT(run("trace %%F/empty.json"), 0);
    CHECK(strstr(last.out, "0 events") && !strstr(last.out, "calls"));
    EXITS(run("trace %%F/empty.json --json"), 0, out, "\"rows\": []");
}

/* ---- damaged files */
static void test_damaged(void) {
    static const struct { const char *text; const char *says; } cases[] = {
        {"", "the file is empty"}, {"   ", "cut off at byte 3, at its start"}, {"\x1f\x8b\x08", "bad.json: "}, {"hello", "JSON, but it begins with byte 0x68"},
        {"{\"a\": 1}", "no array traceEvents"}, {"{\"traceEvents\": 1}", "no array traceEvents"}, {"{\"traceEvents\": [1]}", "an event must be an object"},
        {"{\"traceEvents\": [{}] \"a\": 1}", "a comma or } is missing"}, {"{\"traceEvents\": [{} {}]}", "malformed at byte 20: a comma or ]"},
        {"{\"traceEvents\": []} x", "there is text after the end"},
        {"{\"traceEvents\": [], \"traceEvents\": []}", "appears twice"}, {"{\"a\" 1}", "a colon is missing"}, {"{1: 1}", "a member's name is missing"},
        {"{\"traceEvents\": [],}", "unexpected comma before }"}, {"[{\"ts\": NUN}]", "at byte 8"},
        {"{\"traceEvents\": [{\"ph\": \"X\"", "cut off at byte 27, in event 1; 0 complete events"}};
    char deep[400] = "[{\"a\":";
    check_case("damaged files: exit 3, one line with the position, nothing on stdout");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(in_folder("bad.json"), cases[i].text);
        CHECK_INT(run("trace %%F/bad.json"), 3);
        check_note(strstr(last.err, cases[i].says) != NULL, __FILE__, __LINE__, "case %zu says %s", i, last.err);
        CHECK_TEXT(last.out, "");
        CHECK(strchr(last.err, '\n') && !strchr(last.err, '\n')[1]);
    }
    memset(deep + 6, '[', 100);
    memset(deep + 106, ']', 100);
    strcpy(deep + 206, "}]");
    write_text(in_folder("bad.json"), deep);
    EXITS(run("trace %%F/bad.json"), 3, err, "nested deeper than 64 levels");
    check_case("a truncated file: exit 3 with the position; --partial shows the complete events");
    for (size_t bytes = 1; bytes < sizeof KNOWN - 1; bytes += bytes < 20 ? 6 : 401) {
        char says[80];
        write_file(in_folder("cut.json"), KNOWN, bytes);
        CHECK_INT(run("trace %%F/cut.json"), 3);
        snprintf(says, sizeof says, "cut off at byte %zu,", bytes);
        check_note(strstr(last.err, says) && !*last.out, __FILE__, __LINE__, "%zu bytes: %s", bytes, last.err);
        EXITS(run("trace %%F/cut.json --partial"), 0, out, "CUT OFF there");
    }
}

/* ---- traces as other programs write them, from public bug reports: what `says` must be in the output of --csv or, if it begins with =, of the text */
#define SLICE(cat, name, pid, tid, ts, dur, args) \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":" pid ",\"tid\":" tid ",\"ts\":" ts ",\"dur\":" dur ",\"args\":{" args "}}"
#define ID(id) "\"External id\":" id
#define BY(id) "\"correlation\":" id
#define OP(name, pid, ts, id) SLICE("cpu_op", name, pid, "1", ts, "50", ID(id))
#define CALL(pid, ids) SLICE("cuda_runtime", "launch", pid, "1", "110", "5", ids)
#define WORK(cat, name, pid, ids) SLICE(cat, name, pid, "7", "130", "20", ids)
static void test_published(void) {
    static const struct { const char *what, *events, *says[3]; } cases[] = {
        {"Kineto before October 2024: an External id that is the slice's own correlation is none",
         OP("early", "1", "0", "14") "," OP("copy", "1", "100", "20") "," CALL("1", BY("14") "," ID("14")) "," WORK("gpu_memcpy", "m", "0", BY("14") "," ID("14")),
         {"copy,,,,,,,,,1,1,50000,45000,50000,50000,50000,20000,", "=CUDA time total: 20.000us", NULL}},
        {"id 0 and correlation 0 match nothing; unlinked device time has a row",
         OP("first", "1", "100", "0") "," CALL("1", BY("0")) "," WORK("kernel", "k", "0", BY("0") "," ID("0")),
         {"=[device work outside any operation]", "=CUDA time total: 20.000us", NULL}},
        {"two ranks in one file: a device belongs to the process that has its other ids",
         OP("mm", "10", "100", "1") "," CALL("10", BY("7")) "," OP("softmax", "20", "100", "1") "," CALL("20", BY("7")) "," CALL("20", BY("8")) ","
         WORK("kernel", "k", "1", BY("7") "," ID("1")) "," WORK("kernel", "k", "1", BY("8")),
         {"softmax,,,,,,,,,1,1,50000,45000,50000,50000,50000,20000,", NULL, NULL}},
        {"two ranks whose ids cannot be told apart: no operation, and a line",
         OP("mm", "10", "100", "1") "," CALL("10", BY("7")) "," OP("softmax", "20", "100", "1") "," CALL("20", BY("7")) "," WORK("kernel", "k", "0", BY("7")),
         {"=ids       of 1 device slice occur in several processes", "=[device work outside any operation]", NULL}},
        {"two ranks whose pids say which", OP("mm", "\"[TP0] 83\"", "100", "1") "," OP("softmax", "\"[TP1] 84\"", "100", "1") "," CALL("\"[TP1] 84\"", BY("7")) ","
         CALL("\"[TP0] 83\"", BY("7")) "," WORK("kernel", "k", "\"[TP1] 0\"", BY("7")), {"softmax,,,,,,,,,1,1,50000,45000,50000,50000,50000,20000,", NULL, NULL}},
        {"categories of 2021", SLICE("Operator", "add", "1", "1", "100", "50", ID("1")) "," WORK("Kernel", "k", "0", ID("1")) "," WORK("Memcpy", "c", "0",
         ID("1")) "," WORK("Memset", "s", "0", ID("1")), {"=CUDA time total: 60.000us", NULL, NULL}},
        {"other devices, and a category that nobody knows", WORK("mtia_ccp_events", "m", "0", "") "," WORK("hpu_op", "h", "0", "") ","
         WORK("cuda_profiler_range", "r", "0", "") ","
         WORK("new_thing", "n", "1", ""), {"=CUDA time total: 60.000us", "=unknown   categories: 1 (--json lists them); slices on a stream count as kernels", NULL}},
        {"an unknown category on a stream is the device's, not the host's", WORK("npu_work", "n", "0", "\"stream\":7"), {"=CUDA time total: 20.000us", "=  n  ", NULL}},
        {"steps are the host's", SLICE("user_annotation", "ProfilerStep#1", "1", "1", "0", "100", "") ","
         WORK("gpu_user_annotation", "ProfilerStep#1", "0", "") "," WORK("gpu_user_annotation", "ProfilerStep#1", "1", ""), {"=steps     1, avg 100.000us",
         NULL, NULL}},
        {"overhead owns nothing", OP("add", "1", "105", "1") "," SLICE("overhead", "Flush", "1", "1", "100", "90", ""), {"=Self CPU time total: 140.000us",
         NULL, NULL}},
        {"inf and NaN cost a value",
         "{\"ph\":\"C\",\"name\":\"w\",\"args\":{\"W\":NaN}},{\"ph\":\"X\",\"name\":\"mul\",\"ts\":1,\"dur\":5,\"args\":{\"gb\":-Infinity,\"b\":inf}}",
         {"=no value  2 events with NaN or inf", "=mul", NULL}},
        {"a quote that is not escaped costs an event", OP("a", "1", "0", "1") ",{\"ph\":\"X\",\"name\":\"x\"y\",\"ts\":1,\"dur\":5}," OP("b", "1", "100", "2"),
         {"=malformed 1 event skipped: not JSON; the first is event 2, at byte ", "=events    2 slices", NULL}},
        {"quotes and brackets that close an event too early", OP("a", "1", "0", "1") ",{\"ph\":\"X\",\"name\":\"}x\"}y\",\"ts\":1,\"dur\":5}," OP("b", "1",
         "100", "2"), {"=malformed 1 event", "=events    2 slices", NULL}},
        {"a control byte, a stray backslash, bytes that are not UTF-8, an empty name", OP("a\n", "1", "0", "1") "," OP("\\x", "1", "0", "1") "," OP("\xff",
         "1", "0", "1") "," OP("", "1", "0", "1") "," OP("b", "1", "100", "2"),
         {"=malformed 2 events", "=1 without a name", "=\xef\xbf\xbd"}},
        {"a comma after the last event", OP("a", "1", "0", "1") ",", {"=events    1 slices", NULL, NULL}},
        {"unknown memory is not -1",
         "{\"ph\":\"i\",\"name\":\"[memory]\",\"ts\":1,\"args\":{\"Bytes\":400,\"Device Type\":12,\"Device Id\":0}},{\"ph\":\"i\",\"name\":\"[memory]\",\"ts\":2,"
         "\"args\":{\"Bytes\":5,\"Device Type\":1,\"Device Id\":0,\"Total Allocated\":5}}",
         {"=XPU 0           1               -              -            400", "=device 0        1               5              -", NULL}},
        {"streams of two GPUs",
         "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":7,\"args\":{\"name\":\"stream 7\"}},"
         "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":7,\"args\":{\"name\":\"stream 7\"}},"
         "{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":1,\"args\":{\"labels\":\"GPU 1\"}}," WORK("kernel", "k", "0", "") "," WORK("kernel", "k", "1", ""),
         {"=GPU 1 stream 7", "=process 0 stream 7", NULL}},
        {"Python's frames have a row", OP("a", "1", "10", "1") "," SLICE("python_function", "f", "1", "1", "0", "100", ""), {"=[Python frames]",
         "=Self CPU time total: 100.000us", NULL}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[4000];
        check_case("published traces: %s", cases[i].what);
        snprintf(text, sizeof text, "{\"unknown\": [\"}, {\"], \"traceEvents\": [%s]}", cases[i].events);
        write_text(in_folder("case.json"), text);
        for (int k = 0; k < 3 && cases[i].says[k]; k++) {
            const char *says = cases[i].says[k];
            CHECK_INT(run("trace %%F/case.json %s", *says == '=' ? "" : "--csv"), 0);
            check_note(strstr(last.out, says + (*says == '=')) != NULL, __FILE__, __LINE__, "\"%s\" is not in %s", says, last.out);
        }
    }
    check_case("a compressed trace is read as it is, and a member beyond 4 MiB is skipped");
    char *large = calloc(5000200, 1);
    strcpy(large, "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":5}],\"deviceProperties\":[\"");
    memset(large + strlen(large), 'x', 5000000);
    strcat(large, "\"]}");
    write_text(in_folder("z.json"), large);
    free(large);
    CHECK_INT(run("--version && gzip %%F/z.json"), 0);
    EXITS(run("trace %%F/z.json.gz"), 0, out, "events    1 slices");
}
static void test_usage(void) {
    static const struct { const char *arguments; int code; const char *says; } cases[] = {
        {"", 2, "needs a file"}, {"a b", 2, "unexpected argument"}, {"known.json --csv --json", 2, "cannot be used together"},
        {"known.json --json --table ops", 2, "--table and --json cannot be used together"}, {"known.json --csv --table summary", 2, "not the summary"},
        {"known.json --sort_by speed", 2, "unknown key \"speed\"; expected one of: cpu_time"}, {"known.json --table all,ops", 2, "unknown value \"all,ops\""},
        {"known.json --row_limit -1", 2, "outside"}, {"nothing.json", 3, "No such file"}, {". ", 3, "is a folder"}};
    check_case("usage of trace: exit codes and one line each");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(run("trace %s", cases[i].arguments), cases[i].code);
        check_note(strstr(last.err, cases[i].says) && !*last.out, __FILE__, __LINE__, "case %zu says %s", i, last.err);
    }
    CHECK_INT(run("trace --help"), 0);
    CHECK(strstr(last.out, "--sort_by") && strstr(last.out, "example"));
    check_case("rows beyond --row_limit are counted");
    CHECK_INT(run("trace %%F/known.json --table kernels --row_limit 1"), 0);
    CHECK(strstr(last.out, "softmax") && !strstr(last.out, "gemm") && strstr(last.out, "... 2 more"));
}

/* ---- run --profile */
#define TINY "run samples/cat.jpg -p What --synthetic tiny --tier low --max_new_tokens 4 --ignore_eos --threads 1"
#define WORDS_ALONE "run -p What --synthetic tiny --max_new_tokens 3 --ignore_eos --threads 1"
enum { TINY_STEPS = 3, TINY_BLOCKS = 4 };
/* the sum of a column over all rows, or over the rows of that stage */
static double column_sum(const csv *t, const char *column, const char *stage) {
    double sum = 0;
    for (int i = 0; i < t->count; i++)
        if (!stage || !strcmp(csv_cell(t, &t->rows[i], "stage"), stage)) sum += strtod(csv_cell(t, &t->rows[i], column), NULL);
    return sum;
}
/* A number in `last.out`, which is JSON, by its path of keys separated by dots; NaN if it is missing. */
static double json_number(const char *keys) {
    static vp_json_node nodes[60000];
    char key[80];
    double value = (double)NAN;
    uint32_t node = 0;
    vp_json j;
    size_t needed;
    if (vp_json_parse(last.out, strlen(last.out), nodes, 60000, &j, &needed, NULL) != VP_OK) return value;
    while (*keys) {
        size_t bytes = strcspn(keys, ".");
        snprintf(key, sizeof key, "%.*s", (int)bytes, keys);
        node = vp_json_get(&j, node, key);
        keys += bytes + (keys[bytes] == '.');
    }
    return vp_json_to_double(&j, node, &value) == VP_OK ? value : (double)NAN;
}
/* The self times of all stacks of one recorded step add up to the step's time in the trace. */
static void test_folded(void) {
    double sum = 0, recorded = -1;
    int lines = 0;
    check_case("folded stacks add up to the recorded step");
    CHECK_INT(run(TINY " --profile --num_runs 1 --profile_format folded --trace %%F/folded.json"), 0);
    for (const char *line = last.out; *line && strchr(line, '\n'); line = strchr(line, '\n') + 1, lines++) {
        const char *number = strchr(line, '\n');
        while (number > line && number[-1] != ' ') number--;
        sum += strtod(number, NULL);
    }
    CHECK(strstr(last.out, "request;engine;stage::vit;block 0;vit_attention;attention ") && strstr(last.out, "request;engine;stage::decode;block 3;"));
    CHECK(lines > 60);
    char *trace = check_read(in_folder("folded.json"), NULL);
    const char *step = trace ? strstr(trace, "\"ProfilerStep#1\"") : NULL;
    if (step && (step = strstr(step, "\"dur\": ")) != NULL) recorded = strtod(step + 7, NULL) * 1e3;
    CHECK_NEAR(sum, recorded, 1);
    free(trace);
}
static void test_rows(void) {
    static csv t;
    check_case("the self times of a step's rows add up to its time, to the nanosecond; every call is counted");
    RUNS_CSV(&t, TINY " --profile --num_runs 1 --profile_format csv --group_by stage,part --trace %%F/run.json");
    CHECK_NEAR(column_sum(&t, "host_self_ns", NULL), cell_number(&t, "ProfilerStep*", "host_total_ns"), 0.5);
    CHECK_NEAR(cell_number(&t, "ProfilerStep*", "calls"), 1, 0);
    CHECK_NEAR(cell_number(&t, "k_attention_decode", "calls"), TINY_STEPS * TINY_BLOCKS, 0);
    CHECK_TEXT(csv_cell(&t, csv_find(&t, "k_attention_decode"), "part"), "attention");
    CHECK_TEXT(csv_cell(&t, csv_find(&t, "k_attention_decode"), "file"), "vlmprof_kernels.cu");
    for (int i = 0; i < 5; i++) {
        static const char *const names[] = {"load image", "tokenize", "request", "preprocess", "detok"};
        check_note(csv_find(&t, names[i]) != NULL, __FILE__, __LINE__, "no row %s", names[i]);
    }
    check_case("FLOPs and bytes of the rows equal those of the stages of a plain run");
    CHECK_INT(run(TINY " --json"), 0);
    for (int i = 0; i < 5; i++) {
        static const char *const stages[] = {"vit", "connector", "prefill", "head", "decode"};
        char key[80];
        snprintf(key, sizeof key, "stage_detail.%s.flops", stages[i]);
        CHECK_NEAR(column_sum(&t, "flops", stages[i]), json_number(key), 0);
        snprintf(key, sizeof key, "stage_detail.%s.bytes", stages[i]);
        CHECK_NEAR(column_sum(&t, "bytes", stages[i]), json_number(key), 0);
    }
    free(t.text);
}
/* The trace of the same run, read back by `vlmprof trace`. */
static void test_own_trace(void) {
    static csv table, trace;
    check_case("a run's trace contains the run's operations: calls equal, times equal except for moved edges");
    RUNS_CSV(&table, TINY " --profile --num_runs 1 --profile_format csv --group_by none --trace %%F/run.json");
    CHECK(strstr(last.err, "trace written: "));
    RUNS_CSV(&trace, "trace %%F/run.json --csv");
    for (int i = 0; i < table.count; i++) {
        const char *name = table.rows[i].cells[0];
        double ns = cell_number(&table, name, "host_total_ns");
        if (!strncmp(name, "stage::", 7)) continue; /* ranges of model parts are in between */
        CHECK_NEAR(cell_number(&trace, name, "calls"), cell_number(&table, name, "calls"), 0);
        CHECK_NEAR(cell_number(&trace, name, "host_total_ns"), ns, 0.001 * ns + 100 * cell_number(&table, name, "calls"));
    }
    CHECK_INT(run("trace %%F/run.json --json"), 0);
    CHECK_NEAR(json_number("summary.steps"), 1, 0);
    CHECK_NEAR(json_number("summary.overlaps"), 0, 0);
    FREE_ALL(table.text, trace.text);
}
static int count_files(const char *folder_path) {
    DIR *d = opendir(folder_path);
    int count = 0;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) count += strstr(e->d_name, ".pt.trace.json") != NULL;
    if (d) closedir(d);
    return count;
}
static void test_schedule(void) {
    static csv t;
    check_case("schedule: cycles of wait, warmup, active; an incomplete last cycle is saved; one file per cycle");
    RUNS_CSV(&t, TINY " --profile --profile_format csv --wait 1 --active 2 --repeat 2 --num_runs 7 --output_dir %%F/out");
    CHECK_NEAR(cell_number(&t, "ProfilerStep*", "calls"), 3, 0);
    CHECK_NEAR(cell_number(&t, "k_attention_decode", "calls"), 3 * TINY_STEPS * TINY_BLOCKS, 0);
    CHECK(strstr(last.err, "cut short after 1 of 2 active requests"));
    CHECK_INT(count_files(in_folder("out/profiler_traces")), 2);
    free(t.text);
    CHECK_INT(system("grep -q 'ProfilerStep#2\"' \"$(ls \"$TEST_FOLDER\"/out/profiler_traces/* | head -n 1)\" && "
                     "grep -q 'ProfilerStep#6\"' \"$(ls \"$TEST_FOLDER\"/out/profiler_traces/* | tail -n 1)\""), 0);
    check_case("a name that is already used gives a notice; --warmup 0 warns");
    CHECK_INT(run(TINY " --profile --repeat 2 --warmup 0 --trace %%F/one.json"), 0);
    CHECK(strstr(last.err, "is already saved") && strstr(last.err, "--warmup 0: the first recorded request"));
    CHECK(strstr(last.out, "Self CPU time total") && strstr(last.out, "operations ms") && strstr(last.out, "ceilings measured"));
    CHECK_INT(run("trace %%F/one.json --json"), 0);
    CHECK(json_number("summary.bytes") > 10000);
}
/* The number of requests that `--profile` records with these options, from the calls of a kernel and of the step; stderr stays empty. */
static void check_recorded(const char *options, int recorded, int requests) {
    static csv t;
    char said[40];
    check_case("run --profile %s records %d requests", options, recorded);
    CHECK_INT(run(TINY " --profile --profile_format csv %s -o %%F/recorded.csv", options), 0);
    snprintf(said, sizeof said, "mean of %d request", recorded);
    CHECK(strstr(last.out, said) && !*last.err);
    char *rows = text_of_file(in_folder("recorded.csv"));
    csv_read(&t, rows);
    free(rows);
    CHECK_NEAR(cell_number(&t, "ProfilerStep*", "calls"), recorded, 0);
    CHECK_NEAR(cell_number(&t, "k_attention_decode", "calls"), recorded * TINY_STEPS * TINY_BLOCKS, 0);
    free(t.text);
    CHECK_INT(run(TINY " --profile --trace %%F/recorded.json %s", options), 0);
    snprintf(said, sizeof said, "ProfilerStep#%d\"", requests - 1);
    char *trace = text_of_file(in_folder("recorded.json"));
    CHECK(trace && strstr(trace, said));
    free(trace);
}
static void test_recorded(void) {
    check_recorded("", 5, 6);
    check_recorded("--num_runs 2", 2, 3);
    check_recorded("--num_runs 2 --warmup 3", 2, 5);
    check_recorded("--cold", 5, 5);
    check_recorded("--cold --num_runs 1", 1, 1);
    check_recorded("--active 3", 3, 4);
}
static void test_saved(void) {
    check_case("a saved table is not a trace");
    CHECK_INT(run(TINY " --profile --profile_format json -o %%F/table.json --profile_memory --with_stack --group_by part,place"), 0);
    CHECK(strstr(last.out, "KV cache") && strstr(last.out, "peak"));
    check_refused(run("trace %%F/table.json"), 3, "a table of operations, not a trace");
    check_case("--json: times of operations and of stages");
    CHECK_INT(run(TINY " --profile --num_runs 1 --json"), 0);
    CHECK(strstr(last.out, "\"vlmprof-profile-1\"") && strstr(last.out, "\"timing\": \"op\""));
    CHECK_NEAR(json_number("stages.vit.device_ms"), json_number("stages.vit.operations_ms") + json_number("stages.vit.idle_ms"), 1e-9);
}
/* The table sums device times, and the trace contains each of them: on the emulated GPU. */
static void test_emulated(void) {
    static csv table, kernels;
    static char path[300];
    const char *kept = program;
    snprintf(path, sizeof path, "%s/emulated/vlmprof", getenv("B") ? getenv("B") : "build");
    if (access(path, X_OK)) { check_skip("profile on a GPU", "the command with an emulated GPU was not built (make test builds it)"); return; }
    program = path;
    check_case("GPU code on the CPU: the table's device time equals the trace's");
    RUNS_CSV(&table, "run -p What --synthetic tiny --max_new_tokens 2 --ignore_eos --device cuda --profile --num_runs 1 --profile_format csv --trace %%F/gpu.json");
    RUNS_CSV(&kernels, "trace %%F/gpu.json --csv --table kernels");
    CHECK_NEAR(column_sum(&kernels, "total_us", NULL) * 1e3, column_sum(&table, "device_self_ns", NULL),
               0.001 * column_sum(&table, "device_self_ns", NULL));
    CHECK(column_sum(&table, "device_self_ns", NULL) > 0);
    FREE_ALL(table.text, kernels.text);
    CHECK_INT(run("trace %%F/gpu.json"), 0);
    CHECK(strstr(last.out, "(emulated)") && strstr(last.out, "cudaLaunchKernel") && strstr(last.out, "stream 7"));
    CHECK(strstr(last.out, " 0 more without a launch"));
    program = kept;
}
/* A signal during requests: the current request finishes, and the recorded ones are saved. */
static void test_interrupt(void) {
    static char line[1400];
    const char *kept = program;
    check_case("Ctrl-C: exit 130 with the table and a complete trace, no temporary file");
    snprintf(line, sizeof line, "sh -c '\"$0\" \"$@\" & p=$!; n=0; "
                                "until ls \"$TEST_FOLDER\"/.vlmprof-writing-* >/dev/null 2>&1 || [ $n -gt 300 ]; do sleep 0.1; n=$((n+1)); done; "
                                "sleep 0.3; kill -INT $p; wait $p' %s", kept);
    program = line;
    run(TINY " --profile --active 100000 --trace %%F/stop.json");
    program = kept;
    CHECK_INT(last.code, 130);
    CHECK(strstr(last.out, "Self CPU time total"));
    CHECK(strstr(last.err, "was cut short"));
    CHECK_INT(unfinished_files(), 0);
    CHECK_INT(run("trace %%F/stop.json --table summary"), 0);
}
static void test_profile_usage(void) {
    static const struct { const char *arguments; int code; const char *says; } cases[] = {
        {"--row_limit 3", 2, "--row_limit needs --profile"}, {"--trace a.json", 2, "--trace needs --profile"},
        {"--profile --trace a --output_dir b", 2, "cannot be used together"},
        {"--profile --group_by colour", 2, "unknown value \"colour\"; expected one of: none shape"}, {"--profile --sort_by speed", 2, "expected one of: cpu_time"},
        {"--profile --repeat 0", 2, "--num_runs"}, {"--profile --cold --warmup 1", 2, "--cold cannot be used together"},
        {"--profile --num_runs 1 --active 1", 2, "none of 1 request would be recorded"},
        {"--profile --active 3 --schedule_every_n_steps 2", 2, "schedule: every_n_steps is 2"},
        {"--profile --json --profile_format csv", 2, "--profile_format and --json cannot be used together"},
        {"--profile --show_prompt", 2, "cannot be used together"},
        {"--profile --dump x", 2, "cannot be used together"}, {"--profile --active 0", 2, "outside"},
        {"--profile --trace %F/no/such/t.json", 5, "no/such/t.json"}, {"--profile -o %F/no/such/table", 5, "cannot be written"},
        {"--profile --output_dir %F/known.json", 5, "a file with this name already exists"}};
    check_case("usage of run --profile: exit codes and one line each");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(run("run -p What --synthetic tiny --max_new_tokens 2 %s", cases[i].arguments), cases[i].code);
        check_note(strstr(last.err, cases[i].says) && (!*last.out || cases[i].code == 5), __FILE__, __LINE__, "case %zu says %s", i, last.err);
    }
    EXITS(run("sweep --synthetic tiny --data x --output_dir y --use_profiler_on_all_samples"), 2, err, "needs --use_profiler");
}

/* ---- sweep --use_profiler */
static void test_sweep(void) {
    const char *sweep = "sweep --synthetic tiny --data %%F/q.jsonl --output_dir %%F/%s --tier_list low --top_k_list 1 2 --num_samples 2 "
                        "--num_runs_per_sample 1 --bare_every 0 --max_new_tokens 2 --quiet %s";
    FILE *f = fopen(in_folder("q.jsonl"), "w");
    for (int i = 0; f && i < 2; i++) fprintf(f, "{\"id\": %d, \"question\": \"What?\", \"answers\": [\"a\"]}\n", i);
    if (f) fclose(f);
    check_case("sweep --use_profiler: a table for the first sample of each configuration, nothing in the journal");
    CHECK_INT(run(sweep, "plain", ""), 0);
    make_empty(in_folder("swept"));
    write_text(in_folder("swept/profiler_results_config_1_sample_0.txt"), "q_imgsizetier-low_crops0_topk2_blocks4.json, sample 0\nkept\n");
    CHECK_INT(run(sweep, "swept", "--use_profiler --trace"), 0);
    char *text = text_of_file(in_folder("swept/profiler_results_config_0_sample_0.txt"));
    CHECK(!strncmp(text, "q_imgsizetier-low_crops0_topk1_blocks4.json, sample 0\n", 54) && strstr(text, "Self CPU time total") && strstr(text, "prefill"));
    free(text);
    text = text_of_file(in_folder("swept/profiler_results_config_1_sample_0.txt"));
    CHECK(strstr(text, "\nkept\n")); /* from an earlier session, so not written again */
    free(text);
    CHECK(access(in_folder("swept/profiler_results_config_0_sample_1.txt"), F_OK) != 0);
    CHECK_INT(count_files(in_folder("swept/profiler_traces")), 1);
    CHECK_INT(system("[ $(wc -l <\"$TEST_FOLDER\"/plain/journal.jsonl) -eq $(wc -l <\"$TEST_FOLDER\"/swept/journal.jsonl) ]"), 0);
    check_case("... for all samples; a file of another configuration is replaced; a finished sweep writes none");
    write_text(in_folder("swept/profiler_results_config_1_sample_0.txt"), "other\n");
    remove_folder(in_folder("plain"));
    CHECK_INT(run(sweep, "plain", "--use_profiler --use_profiler_on_all_samples --row_limit 3"), 0);
    CHECK(access(in_folder("plain/profiler_results_config_1_sample_1.txt"), F_OK) == 0);
    CHECK_INT(run(sweep, "swept", "--use_profiler"), 0);
    text = text_of_file(in_folder("swept/profiler_results_config_1_sample_0.txt"));
    CHECK_TEXT(text, "other\n");
    free(text);
}

int main(void) {
    if (!program_begin("profile")) return 1;
    program = built("tests/vlmprof-hooks"); /* with given ceilings */
    test_torch("trace/torch_cpu.csv", "", 0);
    test_torch("trace/torch_cpu_shapes.csv", "--group_by_input_shape", 1);
    RUN_TESTS(test_torch_text, test_shapes, test_known, test_gaps, test_odd, test_damaged, test_published, test_usage, test_folded,
              test_rows, test_own_trace, test_schedule, test_recorded, test_saved, test_emulated, test_interrupt,
              test_profile_usage, test_sweep);
    return program_done("test_profile");
}
