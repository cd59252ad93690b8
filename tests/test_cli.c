/* test_cli.c: the command line as a program: exit codes, stdout, stderr, files; tilings and whole requests against the goldens; a sweep's
 * files against their own rows; resume after a signal, a kill, a torn journal and a full disk; damaged inputs of every kind; info and selftest;
 * the GPU's side of all that in $B/emulated/vlmprof, where tests/emulator/cuda_on_cpu.h stands for the GPU.
 * Runs $PROGRAM (default ./vlmprof) from the repository's root; its files lie in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/scan.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *program = "./vlmprof";

static void pause_ms(long ms) {
    struct timespec t;
    t.tv_sec = ms / 1000;
    t.tv_nsec = ms % 1000 * 1000000;
    nanosleep(&t, NULL);
}

/* ---------------------------------------------------------------------------------------------------- running the program */
enum { ARGUMENTS = 64 };
typedef struct run { int code; char *out, *err; size_t out_bytes; int err_lines; } run; /* code -1: killed by a signal */
static run last;

/* Splits a command at blanks; 'single quotes' hold together. %F stands for the test folder. */
static int split(const char *command, char *room, size_t capacity, char **argv) {
    int count = 0;
    char *to = room;
    while (*command && count < ARGUMENTS - 1 && to + 600 < room + capacity) {
        int quoted = 0;
        command += strspn(command, " ");
        if (!*command) break;
        argv[count++] = to;
        for (; *command && (quoted || *command != ' '); command++) {
            if (*command == '\'') quoted = !quoted;
            else if (!strncmp(command, "%F", 2)) {
                to += snprintf(to, 300, "%s", folder);
                command++;
            } else *to++ = *command;
        }
        *to++ = 0;
    }
    argv[count] = NULL;
    return count;
}

static pid_t start(const char *command, const char *input, const char *out_path, long file_limit_bytes) {
    static char room[8192];
    char *argv[ARGUMENTS + 1];
    const char *in_path = "/dev/null";
    pid_t child;
    argv[0] = (char *)(size_t)program;
    split(command, room, sizeof room, argv + 1);
    if (input) {
        in_path = in_folder("stdin");
        write_text(in_path, input);
    }
    child = fork();
    if (child == 0) {
        int in = open(in_path, O_RDONLY), out = open(out_path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        int err = open(in_folder("stderr"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (in < 0 || out < 0 || err < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(126);
        if (file_limit_bytes) { /* a full disk: writing past the limit fails with EFBIG */
            struct rlimit limit;
            limit.rlim_cur = limit.rlim_max = (rlim_t)file_limit_bytes;
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &limit);
        }
        alarm(300);
        execv(program, argv);
        _exit(127);
    }
    return child;
}
static int finish(pid_t child, const char *out_path) {
    int status = 0;
    free(last.out);
    free(last.err);
    while (waitpid(child, &status, 0) < 0) { }
    last.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    last.out = strcmp(out_path, in_folder("stdout")) ? NULL : check_read(out_path, &last.out_bytes);
    last.err = check_read(in_folder("stderr"), NULL);
    last.err_lines = 0;
    for (const char *p = last.err; p && *p; p++) last.err_lines += *p == '\n';
    return last.code;
}
static int cli_with(const char *command, const char *input, const char *out_path, long limit) { return finish(start(command, input, out_path, limit), out_path); }
static int cli(const char *command) { return cli_with(command, NULL, in_folder("stdout"), 0); }

/* what every refusal has in common: the exit code, an empty stdout, one to four lines on stderr, the words that help */
static int refused_at(const char *file, int line, const char *command, const char *input, int code, const char *words) {
    int good;
    cli_with(command, input, in_folder("stdout"), 0);
    good = check_note(last.code == code, file, line, "%s: exit %d, expected %d: %s", command, last.code, code, last.err ? last.err : "");
    good &= check_note(last.out && !last.out_bytes, file, line, "%s: stdout is not empty: %.80s", command, last.out ? last.out : "");
    good &= check_note(last.err_lines >= 1 && last.err_lines <= 4, file, line, "%s: %d lines on stderr", command, last.err_lines);
    return good & check_note(last.err && strstr(last.err, words), file, line, "%s: stderr lacks \"%s\": %s", command, words, last.err ? last.err : "");
}
#define REFUSED(command, code, words) refused_at(__FILE__, __LINE__, command, NULL, code, words)

/* ------------------------------------------------------------------------------------------------------------- JSON */
typedef struct document { char *text; vp_json_node *nodes; vp_json json; } document;
static int parse(document *d, const char *text, size_t bytes) {
    size_t needed = 0;
    d->text = NULL;
    d->nodes = NULL;
    vp_json_parse(text, bytes, NULL, 0, NULL, &needed, NULL);
    d->nodes = (vp_json_node *)calloc(needed + 1, sizeof *d->nodes);
    return vp_json_parse(text, bytes, d->nodes, needed, &d->json, NULL, NULL) == VP_OK;
}
static int load(document *d, const char *path) {
    size_t bytes = 0;
    char *text = check_read(path, &bytes);
    int good = text && parse(d, text, bytes);
    if (!text) d->nodes = NULL;
    d->text = text;
    return good;
}
static void unload(document *d) {
    free(d->text);
    free(d->nodes);
}
static double number(const document *d, uint32_t object, const char *key) {
    double value = 0;
    return vp_json_to_double(&d->json, vp_json_get(&d->json, object, key), &value) == VP_OK ? value : (double)NAN;
}
static int is_null(const document *d, uint32_t object, const char *key) {
    uint32_t node = vp_json_get(&d->json, object, key);
    return node != VP_JSON_NONE && d->nodes[node].type == VP_JSON_NULL;
}
static uint32_t member(const document *d, uint32_t object, const char *key) { return vp_json_get(&d->json, object, key); }
static int is_text(const document *d, uint32_t object, const char *key, const char *text) { return vp_json_equals(&d->json, member(d, object, key), text); }
/* runs a command that must print one JSON document; the caller frees d->nodes when this says 1 */
static int cli_json(const char *command, int code, document *d) {
    int good = check_note(cli(command) == code, __FILE__, __LINE__, "%s: exit %d, expected %d: %s", command, last.code, code, last.err ? last.err : "");
    return good && check_note(last.out && parse(d, last.out, last.out_bytes), __FILE__, __LINE__, "%s: stdout is no JSON", command);
}
static void check_keys(const document *d, uint32_t object, const char *keys) { /* separated by blanks */
    char one[80];
    for (const char *p = keys; *p; p += strspn(p, " ")) {
        size_t bytes = strcspn(p, " ");
        snprintf(one, sizeof one, "%.*s", (int)bytes, p);
        check_note(vp_json_get(&d->json, object, one) != VP_JSON_NONE, __FILE__, __LINE__, "the key %s is missing", one);
        p += bytes;
    }
}

/* ---------------------------------------------------------------------------------------------------------------- usage */
static void test_usage(void) {
    static const char *const commands[] = {"run", "tile", "sweep", "tokenize", "convert", "info", "selftest", "score", "rescore", "merge",
                                           "report", "best", "fit", "predict", "compare", "trace"};
    check_case("usage");
    CHECK_INT(cli(""), 2);
    CHECK(last.out && !last.out_bytes && last.err && strstr(last.err, "usage: vlmprof"));
    CHECK_INT(cli("--help"), 0);
    CHECK(last.out && strstr(last.out, "usage: vlmprof") && strstr(last.out, "130") && last.err && !*last.err);
    CHECK_INT(cli("--version"), 0);
    CHECK(last.out && strstr(last.out, VLMPROF_VERSION));
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        char command[32];
        snprintf(command, sizeof command, "%s --help", commands[i]);
        CHECK_INT(cli(command), 0);
        CHECK(last.out && strstr(last.out, "example:\n  vlmprof ") && last.err && !*last.err);
    }
    check_case("unknown words name the nearest");
    REFUSED("swep --model x", 2, "nearest is sweep");
    REFUSED("tokenise", 2, "nearest is tokenize");
    REFUSED("profile x", 2, "unknown command"); /* it is an option of run */
    REFUSED("run --topk 3", 2, "nearest is --top_k");
    REFUSED("sweep --max-new-tokens 3", 2, "--max_new_tokens");
    REFUSED("run --csv", 2, "of tile");
    REFUSED("infos", 2, "nearest is info");
    REFUSED("self_test", 2, "nearest is selftest");
    REFUSED("info --tier low", 2, "of run");
    REFUSED("selftest --jsn", 2, "nearest is --json");
    REFUSED("run -x", 2, "unknown option -x");
    check_case("values of options");
    REFUSED("run -p", 2, "needs a value");
    REFUSED("run -p a -p b --synthetic tiny", 2, "given twice");
    REFUSED("run -p a --json=1", 2, "takes no value");
    REFUSED("run -p a --synthetic tiny --top_k 0", 2, "outside 1..");
    REFUSED("run -p a --synthetic tiny --top_k 1e3", 2, "not a whole number");
    REFUSED("run -p a --synthetic tiny --top_k 99999999999999999999", 2, "not a whole number");
    REFUSED("run -p a --synthetic tiny --top_k 9", 2, "8 experts");
    REFUSED("run -p a --synthetic tiny --num_active_blocks 5", 2, "4 blocks");
    REFUSED("run -p a --synthetic tiny --active_blocks 0,4", 2, "0..3");
    REFUSED("run -p a --synthetic tiny --active_blocks 0,1,1", 2, "twice");
    REFUSED("run -p a --synthetic tiny --active_blocks 0,,1", 2, "not a whole number");
    REFUSED("run -p a --synthetic tiny --weights fp16", 2, "bf16 fp32");
    REFUSED("run -p a --synthetic tiny --device gpu", 2, "cuda:N");
    REFUSED("run -p a --synthetic tiny --device cuda:x", 2, "cuda:N");
    REFUSED("run -p a --synthetic tiny --device cuda:", 2, "cuda:N");
    REFUSED("run -p a --synthetic tiny --device cuda:-1", 2, "cuda:N");
    REFUSED("run -p a --synthetic tiny --device cuda1", 2, "cuda:N");
    REFUSED("selftest --device ''", 2, "cuda:N");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --device cuda:1x", 2, "cuda:N");
    REFUSED("info now", 2, "now");
    REFUSED("info --synthetic huge", 2, "molmoe-1b");
    REFUSED("selftest --synthetic huge", 2, "molmoe-1b");
    REFUSED("selftest --synthetic tiny --model x", 2, "one of");
    REFUSED("selftest --model %F/none", 3, "none");
    REFUSED("info --model %F/none", 3, "none");
    REFUSED("run -p a --synthetic tiny --gemm magic", 2, "plain");
    REFUSED("run -p a --synthetic huge", 2, "molmoe-1b");
    REFUSED("run -p a", 2, "--model DIR");
    REFUSED("run -p a --synthetic tiny --model x", 2, "one of");
    REFUSED("run --synthetic tiny", 2, "-p TEXT");
    REFUSED("run a.png b.png -p a --synthetic tiny", 2, "b.png");
    REFUSED("run -p a --synthetic tiny --style vqa2 --raw_prompt", 2, "exclude");
    REFUSED("run -p 'a\xff' --synthetic tiny", 2, "UTF-8");
    REFUSED("run -p a --style '\xc0\x80' --synthetic tiny", 2, "UTF-8");
    REFUSED("run -p a --synthetic tiny --max_new_tokens 5000", 2, "the model has 4096");
    REFUSED("run -p a --synthetic tiny --tier low --crops 2", 2, "exclude");
    REFUSED("run -p a --synthetic tiny --tier low --preprocess adaptive", 2, "--preprocess tier");
    REFUSED("sweep --synthetic tiny --output_dir %F/x", 2, "--data");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl", 2, "--output_dir");
    REFUSED("sweep --synthetic tiny --data a --output_dir %F/x --sampling_strategy halton", 2, "custom_sparse");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --sampling_strategy seed_lhs --tier_list low", 2, "no point");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --tier_list low huge", 2, "low medium high");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --vision_tokens_list 287", 2, "288");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --top_k_list 1 1", 2, "twice");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --tier_list low --vision_tokens_list 432", 2, "exclude");
    REFUSED("sweep --synthetic tiny --data a --output_dir %F/x --dataset_name a/b", 2, "slash");
    CHECK(access(in_folder("x"), F_OK) != 0); /* a refused sweep leaves nothing behind */
}

/* ----------------------------------------------------------------------------------------------------------------- tile */
typedef struct table { char *text; const char *head, *next; } table;
/* text of a column in a row, as `out`; 0 when there is no such column */
static int csv_field(const char *head, const char *line, const char *column, char *out, size_t capacity) {
    for (;;) {
        const char *end = line;
        size_t name = strcspn(head, ",\r\n");
        if (*line == '"') {
            for (end = line + 1; *end && !(*end == '"' && end[1] != '"'); end++) end += *end == '"';
            end += *end == '"';
        }
        end += strcspn(end, ",\r\n");
        if (name == strlen(column) && !strncmp(head, column, name)) {
            snprintf(out, capacity, "%.*s", (int)(end - line), line);
            return 1;
        }
        if (head[name] != ',') return 0;
        head += name + 1;
        line = *end == ',' ? end + 1 : end;
    }
}
static const char *next_line(const char *p) { return strchr(p, '\n') ? strchr(p, '\n') + 1 : p + strlen(p); }

/* Rows of a golden file that have `value` in the column `key`, through --sizes; every column of our own must be the golden's. */
static void tile_against(const char *golden, const char *key, const char *value) {
    char command[200], *sizes, field[64], other[64];
    size_t used = 0;
    const char *line, *ours, *p;
    int rows = 0;
    snprintf(command, sizeof command, "tile --sizes - --csv --%s %s", key, value);
    sizes = (char *)calloc(strlen(golden) + 1, 1);
    for (line = next_line(golden); *line; line = next_line(line)) {
        csv_field(golden, line, key, field, sizeof field);
        if (strcmp(field, value)) continue;
        csv_field(golden, line, "width", field, sizeof field);
        csv_field(golden, line, "height", other, sizeof other);
        used += (size_t)sprintf(sizes + used, "%sx%s\n", field, other);
    }
    cli_with(command, sizes, in_folder("stdout"), 0);
    free(sizes);
    if (!last.out) return;
    ours = next_line(last.out);
    for (line = next_line(golden); *line; line = next_line(line)) {
        csv_field(golden, line, key, field, sizeof field);
        if (strcmp(field, value)) continue;
        for (p = last.out; p < next_line(last.out); p += strcspn(p, ",\n") + 1) {
            char column[64], got[64] = "", want[64] = "";
            snprintf(column, sizeof column, "%.*s", (int)strcspn(p, ",\n"), p);
            csv_field(last.out, ours, column, got, sizeof got);
            if (!CHECK(csv_field(golden, line, column, want, sizeof want))) continue;
            if (!strcmp(column, "error")) CHECK(!got[0] == !want[0]);
            else check_note(!strcmp(got, want), __FILE__, __LINE__, "%s is %s: %.60s", column, got, line);
        }
        ours = next_line(ours);
        rows++;
    }
    CHECK(rows > 100 && !*ours);
}

static void test_tile(void) {
    char *adaptive = check_read(check_golden("tiling/adaptive.csv"), NULL), *tier = check_read(check_golden("tiling/tier.csv"), NULL);
    const char *image = check_golden("images/img-640x300.png");
    char command[600];
    document d;
    check_case("tile: the goldens' columns");
    CHECK(adaptive && tier);
    if (adaptive) tile_against(adaptive, "max_crops", "12");
    if (adaptive) tile_against(adaptive, "max_crops", "1");
    if (tier) tile_against(tier, "tier", "low");
    if (tier) tile_against(tier, "tier", "medium");
    if (tier) tile_against(tier, "tier", "high");
    free(adaptive);
    free(tier);
    check_case("tile: files, JSON, exact crops");
    CHECK_INT((snprintf(command, sizeof command, "tile %s --json", image), cli(command)), 0);
    if (CHECK(last.out && parse(&d, last.out, last.out_bytes))) {
        CHECK_INT(number(&d, vp_json_at(&d.json, 0, 0), "width"), 640);
        CHECK_INT(number(&d, vp_json_at(&d.json, 0, 0), "features"), 144 + 12 * 28);
        CHECK(is_null(&d, vp_json_at(&d.json, 0, 0), "error"));
        free(d.nodes);
    }
    CHECK_INT(cli("tile 640x480 --crops 6 --preprocess adaptive-fill --csv"), 0);
    CHECK(last.out && strstr(last.out, "\n640,480,6,2,3,7,1008,704,"));
    CHECK_INT(cli("tile 640x480 --vision_tokens 1008"), 0);
    CHECK(last.out && strstr(last.out, "784x560"));
    CHECK_INT(cli("tile 1x5000 1000000x1 --tier medium"), 0); /* fill modes refuse nothing for being extreme */
    check_case("tile: refusals");
    REFUSED("tile", 2, "--sizes");
    REFUSED("tile 12x", 2, "WIDTHxHEIGHT");
    REFUSED("tile 0x5", 2, "1..");
    REFUSED("tile 1x5000", 2, "1x5000");
    REFUSED("tile no-such-file.png", 3, "no-such-file.png");
    REFUSED("tile 640x480 --csv --json", 2, "exclude");
    REFUSED("tile 640x480 --preprocess tier", 2, "--tier");
    REFUSED("tile --sizes %F/none", 3, "none");
    CHECK_INT(cli("tile 640x480 12x 0x5 --csv"), 3); /* among several a refused one is a row */
    CHECK(last.out && strstr(last.out, "\n640,480,12,2,3,7,704,") && strstr(last.out, "12x: want") && last.err_lines == 1);
    CHECK_INT(cli_with("tile --sizes - --json", "640x480\n\nnonsense\n320 240\n", in_folder("stdout"), 0), 3);
    if (CHECK(last.out && parse(&d, last.out, last.out_bytes))) {
        CHECK_INT(d.nodes[0].count, 3);
        CHECK(!is_null(&d, vp_json_at(&d.json, 0, 1), "error") && is_null(&d, vp_json_at(&d.json, 0, 1), "rows"));
        CHECK_INT(number(&d, vp_json_at(&d.json, 0, 2), "height"), 240);
        free(d.nodes);
    }
    if (access("/dev/full", W_OK) == 0) {
        CHECK_INT(cli_with("tile 640x480", NULL, "/dev/full", 0), 5);
        CHECK_INT(last.err_lines, 1);
    }
}

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
    snprintf(command, sizeof command, "tokenize --model %s", model);
    refused_at(__FILE__, __LINE__, command, "good\nbad \xff\n", 2, "line 2");
    snprintf(command, sizeof command, "tokenize --model %s --decode '1 two'", model);
    REFUSED(command, 2, "two");
    REFUSED("tokenize hello", 2, "--tokenizer FILE");
    REFUSED("tokenize --tokenizer samples/cat.jpg hello", 3, "cat.jpg");
    REFUSED("tokenize --synthetic tiny --clean_up hello", 2, "--decode");
}

/* the fields that --jsonl makes are taken out of the rows before */
static char *without(const char *text, const char *const *keys) {
    char *out = NULL;
    size_t used = 0;
    for (const char *line = text; *line; line = next_line(line)) {
        document d;
        int first = 1;
        if (!CHECK(parse(&d, line, strcspn(line, "\n")))) break;
        out = (char *)realloc(out, used + strcspn(line, "\n") + 8);
        out[used++] = '{';
        for (uint32_t i = 1; i < d.json.node_count; i = d.nodes[i + 1].end) {
            int made = 0;
            for (int k = 0; keys[k]; k++) made |= vp_json_equals(&d.json, i, keys[k]);
            if (made) continue;
            used += (size_t)sprintf(out + used, "%s%.*s", first ? "" : ", ", (int)((size_t)(d.json.text + d.nodes[i + 1].start + d.nodes[i + 1].bytes
                                    - (d.json.text + d.nodes[i].start - 1)) + (d.nodes[i + 1].type == VP_JSON_STRING)), d.json.text + d.nodes[i].start - 1);
            first = 0;
        }
        used += (size_t)sprintf(out + used, "}\n");
        unload(&d);
    }
    return out;
}
/* every golden prompt comes back from its fields alone, the other fields as they were */
static void check_prompt_rows(const char *tokenizer, const char *const *left_out) {
    char *want = check_read(check_golden("prompts/prompts.jsonl"), NULL), *input = want ? without(want, left_out) : NULL;
    const char *w = want, *g, *in = input;
    char command[700], text[4096];
    int rows = 0;
    snprintf(command, sizeof command, "tokenize --tokenizer %s --jsonl", tokenizer);
    if (!CHECK(want && input)) return;
    CHECK_INT(cli_with(command, input, in_folder("stdout"), 0), 0);
    for (g = last.out; g && *g && *w && *in; g = next_line(g), w = next_line(w), in = next_line(in), rows++) {
        document golden, got;
        uint32_t a, b;
        size_t kept = strcspn(in, "\n") - 1;
        CHECK(parse(&golden, w, strcspn(w, "\n")) && parse(&got, g, strcspn(g, "\n")));
        CHECK(!strncmp(g, in, kept)); /* what was there stays, byte for byte */
        a = vp_json_get(&golden.json, 0, "prompt_text");
        b = vp_json_get(&got.json, 0, "prompt_text");
        CHECK(vp_json_text(&golden.json, a, text, sizeof text, NULL) == VP_OK && vp_json_equals(&got.json, b, text));
        a = vp_json_get(&golden.json, 0, "ids");
        b = vp_json_get(&got.json, 0, "ids");
        CHECK(b != VP_JSON_NONE && golden.nodes[a].bytes == got.nodes[b].bytes
              && !memcmp(w + golden.nodes[a].start, g + got.nodes[b].start, (size_t)golden.nodes[a].bytes));
        unload(&golden);
        unload(&got);
    }
    CHECK_INT(rows, 60);
    free(want);
    free(input);
}
static void test_tokenize_jsonl(void) {
    static const char *const made[] = {"prompt_text", "ids", NULL}, *const by_style[] = {"dataset", "prompt_text", "ids", "messages", NULL};
    const char *tokenizer = check_golden("tokenizer/tokenizer.json");
    check_case("tokenize --jsonl: golden prompts");
    if (!tokenizer) check_skip("tokenize --jsonl: golden prompts", "no ../shared/goldens/tokenizer/tokenizer.json");
    else {
        char copy[512];
        snprintf(copy, sizeof copy, "%s", tokenizer);
        check_prompt_rows(copy, made);
        check_prompt_rows(copy, by_style);
    }
    check_case("tokenize --jsonl: texts and ids, other fields kept");
    CHECK_INT(cli_with("tokenize --synthetic tiny --jsonl",
                       "{\"n\": [1, {\"a\": null}], \"text\": \"a\\u0000b\", \"ids\": 3, \"z\": 1.50}\n\n {\"ids\": [99, 100], \"text\": null}\n"
                       "{\"question\": \"x\", \"text\": \"kept\", \"prompt_text\": \"old\"}\n{\"style\": \"coco_captioning\", \"rng_seed\": 78}\n",
                       in_folder("stdout"), 0), 0);
    CHECK(last.out && !strncmp(last.out, "{\"n\": [1, {\"a\": null}], \"text\": \"a\\u0000b\", \"z\": 1.50, \"ids\": [99, 2, 100]}\n"
                                         "{\"ids\": [99, 100], \"text\": \"ab\"}\n"
                                         "{\"question\": \"x\", \"text\": \"kept\", \"prompt_text\": \" User: x Assistant:\", \"ids\": [34, ", 170));
    CHECK(last.out && strstr(last.out, "Brief Caption:A short image caption: Assistant:"));
    CHECK_INT(cli_with("tokenize --synthetic tiny --jsonl --decode --skip_special", "{\"ids\": [99, 0], \"text\": \"old\"}", in_folder("stdout"), 0), 0);
    CHECK_TEXT(last.out, "{\"ids\": [99, 0], \"text\": \"a\"}\n");
    check_case("tokenize --jsonl: refusals name the line");
#define BAD_LINE(input, words) refused_at(__FILE__, __LINE__, "tokenize --synthetic tiny --jsonl", input, 3, words)
    BAD_LINE("{\"text\": \"a\"}\n[1]\n", "line 2: want one JSON object");
    BAD_LINE("{\"text\": \"a\"", "line 1");
    BAD_LINE("{\"text\": \"\xff\"}", "line 1");
    BAD_LINE("{\"text\": 1}", "\"text\" must be");
    BAD_LINE("{\"ids\": [1.5]}", "\"ids\" must be");
    BAD_LINE("{\"ids\": [4294967296]}", "\"ids\" must be");
    BAD_LINE("{\"ids\": {}}", "\"ids\" must be");
    BAD_LINE("{\"id\": 1}", "has none of");
    BAD_LINE("{\"question\": [1]}", "\"question\" must be");
    BAD_LINE("{\"questions\": \"a\"}", "\"questions\" must be");
    BAD_LINE("{\"question\": \"a\", \"options\": [1]}", "\"options\" must be");
    BAD_LINE("{\"question\": \"a\", \"hint\": 7}", "\"hint\" must be");
    BAD_LINE("{\"question\": \"a\", \"dataset\": \"vqa\"}", "none of the known ones");
    BAD_LINE("{\"question\": \"a\", \"dataset\": \"science_qa_img\"}", "no options");
    BAD_LINE("{\"dataset\": \"text_vqa\"}", "no question");
    BAD_LINE("{\"dataset\": \"coco_caption\", \"seed\": 4294967295, \"index\": 1}", "over 4294967295");
    BAD_LINE("{\"dataset\": \"coco_caption\", \"seed\": -1}", "\"seed\" must be");
    BAD_LINE("{\"text\": \"a\", \"k\\u0000\": 1}", "a key holds");
    refused_at(__FILE__, __LINE__, "tokenize --synthetic tiny --jsonl --decode", "{\"text\": \"a\"}", 3, "has no \"ids\"");
    REFUSED("tokenize --synthetic tiny --jsonl {}", 2, "stdin");
}

/* ------------------------------------------------------------------------------------------------------------------ run */
static void test_show_prompt(void) {
    document d;
    check_case("run --show_prompt: text and ids, nothing runs");
    CHECK_INT(cli("run samples/cat.jpg --synthetic tiny -p 'Is it?' --style vqa2 --show_prompt"), 0);
    CHECK(last.out && strstr(last.out, "\"prompt_text\": \" User: vqa2: Is it? Assistant:\", \"ids\": [34, 87, "));
    if (CHECK(parse(&d, last.out, last.out_bytes))) {
        CHECK_INT(d.nodes[vp_json_get(&d.json, 0, "ids")].count, 30);
        CHECK_INT(number(&d, 0, "total_sequence_length"), 1 + 30 + number(&d, 0, "image_tokens"));
        CHECK(number(&d, 0, "image_tokens") > 0);
    }
    unload(&d);
    CHECK_INT(cli("run --synthetic molmoe-1b -p a --raw_prompt --show_prompt"), 0); /* weights of 14 GB are not made */
    CHECK(last.out && strstr(last.out, "{\"prompt_text\": \"a\", \"ids\": [99]"));
    REFUSED("run --synthetic tiny -p a --show_prompt --dump %F/x", 2, "--dump");
}

static int same_integers(const char *ours, const char *golden, int64_t count) {
    check_array a, b;
    int good;
    if (!check_npy(ours, &a)) return 0;
    if (!check_npy(golden, &b)) { check_free(&a); return 0; }
    good = a.count >= count && b.count >= count && (count > 0 || a.count == b.count);
    for (int64_t i = 0; good && i < (count ? count : a.count); i++) good = check_at(&a, i) == check_at(&b, i);
    check_free(&a);
    check_free(&b);
    return good;
}

/* A golden case through the whole command: question, style, picture and knobs as words; inputs and tokens must be the reference's. */
static void run_case(const char *name, const char *words) {
    char relative[600], golden[512], command[1500];
    const char *path;
    check_array a;
    check_case("run: golden case %s", name);
    snprintf(relative, sizeof relative, "models/cases/%s", name);
    path = check_golden(relative);
    if (!CHECK(path != NULL)) return;
    snprintf(golden, sizeof golden, "%s", path);
    snprintf(command, sizeof command, "run %s --model %s --weights fp32 --ignore_eos --max_new_tokens 6 --dump %%F/dump", words,
             check_golden(name[0] == 'a' ? "models/tiny-a" : "models/tiny-b"));
    CHECK_INT(cli(command), 0);
    CHECK(last.out && strstr(last.out, "TTFT") && strstr(last.out, "unaccounted") && !strstr(last.out, "synthetic"));
    snprintf(relative, sizeof relative, "%s/input_ids.npy", golden);
    CHECK(same_integers(in_folder("dump/input_ids.npy"), relative, 0));
    snprintf(relative, sizeof relative, "%s/fp32/tokens.npy", golden);
    CHECK(same_integers(in_folder("dump/tokens.npy"), relative, 6));
    if (CHECK(check_npy(in_folder("dump/logits.npy"), &a))) {
        CHECK(a.dimensions == 2 && a.shape[0] == 6 && a.shape[1] == 704 && !strcmp(a.type, "<f4"));
        check_free(&a);
    }
    snprintf(relative, sizeof relative, "%s/image_input_idx.npy", golden);
    if (access(relative, F_OK) == 0) {
        CHECK(same_integers(in_folder("dump/image_input_idx.npy"), relative, 0));
        snprintf(relative, sizeof relative, "%s/image_masks.npy", golden);
        CHECK(same_integers(in_folder("dump/image_masks.npy"), relative, 0));
    } else if (CHECK(check_npy(in_folder("dump/pixels.npy"), &a))) { /* no image: no crops, and nothing of the case before */
        CHECK(a.dimensions == 3 && a.shape[0] == 0 && a.shape[2] == 588);
        check_free(&a);
    }
}

static const char *const stages[] = {"preprocess", "h2d", "vit", "connector", "embed", "prefill", "head", "sample", "decode", "detok"};

/* Host and device time, launches, FLOPs and bytes of each stage: the device's time is the stage's, host stages have none, and the prefill's FLOPs
 * are those of its linears (worked out here from the tiny shape, 2 of 8 experts) and at most as much again for attention and the rest. */
static void check_stage_detail(const document *d, uint32_t row, double tokens, double blocks) {
    uint32_t all = member(d, row, "stage_detail"), ms = member(d, row, "stages");
    double linears = 2 * tokens * blocks * (4 * 128 * 128 + 8 * 128 + 2 * 3 * 128 * 64);
    CHECK_INT(d->nodes[all].count, 10);
    for (int i = 0; i < 10; i++) {
        uint32_t s = member(d, all, stages[i]);
        int ran = !is_null(d, ms, stages[i]), host = i == 0 || i == 9;
        check_keys(d, s, "wall_ms device_ms launches flops bytes");
        CHECK(ran ? number(d, s, "wall_ms") >= 0 : is_null(d, s, "wall_ms"));
        if (host || !ran) CHECK(is_null(d, s, "device_ms") && is_null(d, s, "launches") && is_null(d, s, "flops") && is_null(d, s, "bytes"));
        else CHECK_NEAR(number(d, s, "device_ms"), number(d, ms, stages[i]), 0);
        if (ran && i >= 2 && i <= 8) CHECK(number(d, s, "launches") >= 1 && number(d, s, "bytes") > 0);
    }
    CHECK(number(d, member(d, all, "prefill"), "flops") >= linears && number(d, member(d, all, "prefill"), "flops") <= 2 * linears);
}

static void test_run_json(void) {
    char command[700];
    document d;
    check_case("run: JSON of a synthetic model");
    snprintf(command, sizeof command, "run %s -p 'Where is it?' --style vqa2 --synthetic tiny --max_new_tokens 5 --ignore_eos --num_runs 2 --json",
             check_golden("images/img-640x300.png"));
    CHECK_INT(cli(command), 0);
    CHECK(last.err && !*last.err);
    if (CHECK(last.out && parse(&d, last.out, last.out_bytes))) {
        uint32_t s = vp_json_get(&d.json, 0, "stages"), runs = vp_json_get(&d.json, 0, "runs"), decode = vp_json_get(&d.json, 0, "T_decode_per_step");
        double sum = number(&d, 0, "unaccounted");
        for (int i = 0; i < 10; i++) {
            sum += number(&d, s, stages[i]);
            CHECK(number(&d, s, stages[i]) >= 0);
        }
        CHECK_NEAR(sum, number(&d, 0, "T_total"), 1e-6 * sum);
        CHECK(number(&d, 0, "T_total") > 0 && number(&d, 0, "closure") <= 1 && number(&d, 0, "unaccounted") >= 0);
        CHECK_NEAR(number(&d, 0, "T_vision_total"), number(&d, s, "vit") + number(&d, s, "connector"), 1e-9);
        CHECK_NEAR(number(&d, 0, "T_LLM_prefill"), number(&d, s, "embed") + number(&d, s, "prefill") + number(&d, s, "head") + number(&d, s, "sample"), 1e-9);
        CHECK_NEAR(number(&d, 0, "T_decode_per_token"), number(&d, 0, "T_LLM_decode") / 4, 1e-9);
        CHECK_INT(d.nodes[decode].count, 4); /* N tokens, N - 1 steps, two runs of each */
        CHECK_INT(d.nodes[vp_json_at(&d.json, decode, 0)].count, 2);
        CHECK_INT(d.nodes[vp_json_get(&d.json, runs, "T_total")].count, 2);
        CHECK_INT(number(&d, 0, "output_tokens"), 5);
        CHECK(vp_json_equals(&d.json, vp_json_get(&d.json, 0, "prompt"), " User: vqa2: Where is it? Assistant:"));
        CHECK_INT(d.nodes[vp_json_get(&d.json, 0, "synthetic")].type, VP_JSON_TRUE);
        CHECK_INT(d.nodes[vp_json_get(&d.json, 0, "answers_equal_over_runs")].type, VP_JSON_TRUE);
        CHECK_INT(number(&d, vp_json_get(&d.json, 0, "config"), "max_crops"), 12);
        CHECK_INT(number(&d, 0, "total_sequence_length"), 1 + (480 + 24 + 4) + number(&d, 0, "input_text_tokens"));
        check_keys(&d, vp_json_get(&d.json, 0, "provenance"), "version build host date device device_note gpu gemm_rows_1 argv seed threads clocks");
        check_stage_detail(&d, 0, number(&d, 0, "total_sequence_length"), 4);
        free(d.nodes);
    }
    check_case("run: text only, one token");
    CHECK_INT(cli("run -p hello --synthetic tiny --max_new_tokens 1 --json"), 0);
    if (CHECK(last.out && parse(&d, last.out, last.out_bytes))) {
        CHECK(is_null(&d, 0, "T_vision_total") && is_null(&d, 0, "T_decode_per_token") && is_null(&d, 0, "tokens_per_second"));
        CHECK(is_null(&d, 0, "actual_tiling") && number(&d, 0, "T_LLM_prefill") > 0);
        check_stage_detail(&d, 0, number(&d, 0, "total_sequence_length"), 4);
        free(d.nodes);
    }
    CHECK_INT(cli("run -p hello --synthetic tiny --max_new_tokens 2"), 0);
    CHECK(last.out && strstr(last.out, "synthetic weights") && strstr(last.out, "TPOT") && !strstr(last.out, "a step"));
    CHECK_INT(cli("run -p hello --synthetic tiny --max_new_tokens 3 --ignore_eos"), 0);
    CHECK(last.out && strstr(last.out, "launches      GFLOP        GB   TFLOP/s     GB/s") && strstr(last.out, "decode (2 steps)") && strstr(last.out, "  a step "));
    check_case("run --device cpu is the CPU, and no GPU is named");
    if (cli_json("run -p hello --synthetic tiny --max_new_tokens 1 --device cpu --json", 0, &d)) {
        uint32_t from = member(&d, 0, "provenance");
        CHECK(is_null(&d, from, "device_note") && is_null(&d, from, "gpu"));
        CHECK(!strncmp(d.json.text + d.nodes[member(&d, from, "device")].start, "cpu: ", 5));
        free(d.nodes);
    }
}

static void test_run(void) {
    char words[600];
    snprintf(words, sizeof words, "%s -p 'What color is the bus?'", check_golden("images/img-640x300.png"));
    run_case("a1-adaptive-wide", words);
    snprintf(words, sizeof words, "%s -p 'What is written on the sign?' --style text_vqa --tier medium --top_k 4 --active_blocks 0,1,3",
             check_golden("images/img-333x517.png"));
    run_case("a4-medium-k4-skip", words);
    run_case("a6-text-only", "-p 'Is there a clock next to the bridge?'");
    snprintf(words, sizeof words, "%s -p ' User: What can be seen behind the white tower? Assistant:' --raw_prompt", check_golden("images/img-333x517.png"));
    run_case("b2-adaptive-k8", words);
    test_run_json();
}

/* ------------------------------------------------------------------------------------------------------------ bad input */
/* A copy of a golden checkpoint: links, but for the file `changed`, which is left to the caller. */
static void link_model(const char *golden, const char *to, const char *changed) {
    char here[512], from[1024], target[1024];
    DIR *d = opendir(golden);
    struct dirent *e;
    remove_folder(to);
    mkdir(to, 0777);
    if (!getcwd(here, sizeof here)) return;
    while (d && (e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.' || !strcmp(e->d_name, changed)) continue;
        snprintf(from, sizeof from, "%s/%s/%s", here, golden, e->d_name);
        snprintf(target, sizeof target, "%s/%s", to, e->d_name);
        CHECK_INT(symlink(from, target), 0);
    }
    if (d) closedir(d);
}
static void broken_model(const char *golden, const char *file, const char *words, size_t keep_bytes, const char *from, const char *to) {
    const char *model = in_folder("model");
    char path[600], *text, *found, *out;
    size_t bytes = 0;
    check_case("damaged checkpoint: %s %s", file, from ? from : keep_bytes ? "cut" : "missing");
    if (!CHECK(check_golden(golden) != NULL)) return;
    link_model(check_golden(golden), model, file);
    snprintf(path, sizeof path, "%s/%s", check_golden(golden), file);
    text = check_read(path, &bytes);
    snprintf(path, sizeof path, "%s/%s", model, file);
    if (CHECK(text != NULL) && from) {
        found = strstr(text, from);
        out = (char *)calloc(bytes + strlen(to) + 1, 1);
        if (CHECK(found != NULL)) {
            memcpy(out, text, (size_t)(found - text));
            strcat(out, to);
            strcat(out, found + strlen(from));
            write_text(path, out);
        }
        free(out);
    } else if (text && keep_bytes) write_file(path, text, keep_bytes < bytes ? keep_bytes : bytes);
    free(text);
    REFUSED("run -p hello --model %F/model --max_new_tokens 1", 3, words);
    REFUSED("info --model %F/model", 3, words);
}

static void put_be32(unsigned char *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> (24 - 8 * i));
}

static void test_bad_input(void) {
    static const unsigned char png_head[33] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R', 0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0};
    unsigned char bomb[33];
    size_t bytes = 0;
    char *image = check_read(check_golden("images/img-640x300.png"), &bytes);
    broken_model("models/tiny-a", "config.json", "config", 0, NULL, NULL);
    broken_model("models/tiny-a", "config.json", "config.json", 400, NULL, NULL);
    broken_model("models/tiny-a", "config.json", "", 0, "\"n_layers\": 4", "\"n_layers\": 5"); /* a block without tensors */
    broken_model("models/tiny-a", "config.json", "", 0, "\"vocab_size\": 655", "\"vocab_size\": 1e300");
    broken_model("models/tiny-a", "config.json", "", 0, "\"embedding_size\": 704", "\"embedding_size\": 640"); /* another shape */
    broken_model("models/tiny-a", "tokenizer.json", "tokenizer.json", 0, NULL, NULL);
    broken_model("models/tiny-a", "tokenizer.json", "tokenizer.json", 5000, NULL, NULL);
    broken_model("models/tiny-a", "model.safetensors", "safetensors", 0, NULL, NULL);
    broken_model("models/tiny-a", "model.safetensors", "safetensors", 3000000, NULL, NULL);
    broken_model("models/tiny-a", "model.safetensors", "safetensors", 4, NULL, NULL);
    broken_model("models/tiny-b", "model-00002-of-00002.safetensors", "model-00002-of-00002.safetensors", 0, NULL, NULL);
    check_case("damaged images");
    REFUSED("run no.png -p a --synthetic tiny", 3, "no.png");
    REFUSED("run cli.c -p a --synthetic tiny", 3, "cli.c");
    REFUSED("run %F -p a --synthetic tiny", 3, "");
    if (CHECK(image != NULL)) write_file(in_folder("cut.png"), image, bytes / 2);
    REFUSED("run %F/cut.png -p a --synthetic tiny", 3, "cut.png");
    memcpy(bomb, png_head, sizeof bomb);
    put_be32(bomb + 16, 100000);
    put_be32(bomb + 20, 100000);
    write_file(in_folder("bomb.png"), bomb, sizeof bomb);
    REFUSED("run %F/bomb.png -p a --synthetic tiny", 3, "bomb.png");
    write_text(in_folder("empty.png"), "");
    REFUSED("run %F/empty.png -p a --synthetic tiny", 3, "empty.png");
    free(image);
    check_case("importance scores");
    write_text(in_folder("scores.json"), "{\"1\": 0.5, \"2\": 0.9}");
    CHECK_INT(cli("run -p a --synthetic tiny --num_active_blocks 3 --importance_scores_file %F/scores.json --max_new_tokens 1 --json"), 0);
    CHECK(last.out && strstr(last.out, "\"active_block_indices\": [0, 2, 3]"));
    write_text(in_folder("scores.json"), "{\"1\": 0.5, \"7\": 0.9}");
    REFUSED("run -p a --synthetic tiny --num_active_blocks 3 --importance_scores_file %F/scores.json", 3, "\"7\"");
    write_text(in_folder("scores.json"), "{\"1\": NaN}");
    REFUSED("run -p a --synthetic tiny --num_active_blocks 3 --importance_scores_file %F/scores.json", 3, "scores.json");
    check_case("data sets");
    REFUSED("sweep --synthetic tiny --data %F/none.jsonl --output_dir %F/x", 3, "none.jsonl");
    write_text(in_folder("d.jsonl"), "{\"question\": \"a\"}\n{\"question\": \n");
    REFUSED("sweep --synthetic tiny --data %F/d.jsonl --output_dir %F/x", 3, "line 2");
    write_text(in_folder("d.jsonl"), "{\"question\": 3}\n");
    REFUSED("sweep --synthetic tiny --data %F/d.jsonl --output_dir %F/x", 3, "\"question\"");
    write_text(in_folder("d.jsonl"), "{\"question\": \"a\", \"answers\": [1]}\n");
    REFUSED("sweep --synthetic tiny --data %F/d.jsonl --output_dir %F/x", 3, "\"answers\"");
    write_text(in_folder("d.jsonl"), "\n \n");
    REFUSED("sweep --synthetic tiny --data %F/d.jsonl --output_dir %F/x", 3, "no line");
    REFUSED("sweep --synthetic tiny --data %F/d.jsonl %F/d.jsonl --output_dir %F/x", 2, "twice");
    check_case("folders that cannot be");
    write_text(in_folder("file"), "x");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/file/x", 5, "file");
    REFUSED("run -p a --synthetic tiny --dump %F/file/x", 5, "file");
}

/* ----------------------------------------------------------------------------------------------------------- data sets */
#define DATA "sweep --synthetic tiny --output_dir %F/out --tier_list low --top_k_list 1 --num_runs_per_sample 1 "
static const char QUESTIONS[] =
    "{\"info\": {\"version\": \"2.0\"}, \"data_subtype\": \"val2014\", \"questions\": [\n"
    "{\"image_id\": 42, \"question\": \"What is it?\", \"question_id\": 42001}, {\"image_id\": 42, \"question\": \"\\u00dfo?\", \"question_id\": 42000},\n"
    "{\"image_id\": 7, \"question\": \"Where?\", \"question_id\": 7000}], \"license\": []}\n";
static const char ANNOTATIONS[] =
    "{\"annotations\": [{\"question_id\": 7000, \"answer_type\": \"other\", \"image_id\": 7, \"answers\": [{\"answer\": \"there\", \"answer_id\": 1}]},"
    "{\"question_id\": 42000, \"answer_type\": \"yes/no\", \"answers\": []}, {\"question_id\": 1, \"answers\": 3}, {\"question_id\": 42001, \"answer_type\": "
    "\"yes/no\", \"answers\": [{\"answer\": \"a \\\"bus\\\"\", \"raw_answer\": \"raw\"}, {\"answer\": \"bus\", \"raw_answer\": \"raw\"}]}]}";
#define VQA_FILE "vqa/v2_OpenEnded_mscoco_val2014_questions.json"
#define NOTES_FILE "vqa/v2_mscoco_val2014_annotations.json"

static void make_vqa(void) {
    size_t bytes = 0;
    char *image = check_read(check_golden("images/img-200x150.png"), &bytes);
    mkdir(in_folder("vqa"), 0777);
    mkdir(in_folder("vqa/val2014"), 0777);
    write_text(in_folder(VQA_FILE), QUESTIONS);
    write_text(in_folder(NOTES_FILE), ANNOTATIONS);
    if (CHECK(image != NULL)) write_file(in_folder("vqa/val2014/COCO_val2014_000000000042.jpg"), image, bytes);
    free(image);
}
static int load_out(document *d, const char *name) {
    char path[600];
    snprintf(path, sizeof path, "%s/out/%s", folder, name);
    d->nodes = NULL;
    d->text = NULL;
    return CHECK(load(d, path));
}
static uint32_t row_at(const document *d, uint32_t index) { return vp_json_at(&d->json, vp_json_get(&d->json, 0, "per_sample_results"), index); }
static void check_row(const document *d, uint32_t index, int64_t sample_id, const char *status, const char *prompt) {
    CHECK_INT(number(d, row_at(d, index), "sample_id"), sample_id);
    CHECK(is_text(d, row_at(d, index), "status", status));
    CHECK(is_text(d, row_at(d, index), "prompt", prompt));
}
static void check_metadata(const document *d, uint32_t index, const char *key, const char *json) {
    uint32_t node = member(d, member(d, row_at(d, index), "metadata"), key);
    int quotes = node != VP_JSON_NONE && d->nodes[node].type == VP_JSON_STRING;
    if (!CHECK(node != VP_JSON_NONE)) return;
    check_note(d->nodes[node].bytes == strlen(json) && !memcmp(d->json.text + d->nodes[node].start, json, strlen(json)), __FILE__, __LINE__,
               "metadata.%s is %.*s, expected %s", key, (int)d->nodes[node].bytes + quotes, d->json.text + d->nodes[node].start, json);
}

static void test_vqa(void) {
    document d;
    check_case("VQA v2: official names, answers, a missing image is a row");
    make_vqa();
    CHECK_INT(cli(DATA "--data %F/" VQA_FILE " --max_new_tokens 2"), 1);
    if (load_out(&d, "v2-OpenEnded-mscoco-val2014-questions_imgsizetier-low_crops1_topk1_blocks4.json")) {
        CHECK_INT(number(&d, 0, "num_samples"), 3);
        CHECK_INT(number(&d, 0, "max_new_tokens"), 2);
        check_row(&d, 0, 0, "ok", " User: vqa2: What is it? Assistant:");
        check_row(&d, 1, 1, "ok", " User: vqa2: \xc3\x9fo? Assistant:");
        check_row(&d, 2, 2, "failed", " User: vqa2: Where? Assistant:");
        check_metadata(&d, 0, "answers", "[\"a \\\"bus\\\"\", \"bus\"]");
        check_metadata(&d, 0, "id", "42001");
        check_metadata(&d, 0, "image_id", "42");
        check_metadata(&d, 1, "answer_type", "yes/no");
        check_metadata(&d, 2, "answers", "[\"there\"]");
        CHECK(isfinite(number(&d, row_at(&d, 0), "accuracy")) && is_null(&d, row_at(&d, 1), "accuracy"));
        CHECK(!is_null(&d, row_at(&d, 2), "reason"));
    }
    unload(&d);
    remove_folder(in_folder("out"));
    check_case("VQA v2: OK-VQA's files have the same form; --annotations, --image_dir");
    rename(in_folder(NOTES_FILE), in_folder("vqa/notes.json"));
    CHECK_INT(cli(DATA "--data %F/" VQA_FILE " --dataset_name okvqa --annotations %F/vqa/notes.json --image_dir %F/vqa/val2014 --ignore_eos"), 1);
    if (load_out(&d, "okvqa_imgsizetier-low_crops1_topk1_blocks4.json")) {
        check_row(&d, 0, 0, "ok", " User: okvqa: What is it? Assistant:");
        CHECK_INT(number(&d, row_at(&d, 0), "output_tokens"), 32);
        check_metadata(&d, 0, "answers", "[\"raw\", \"raw\"]");
        check_metadata(&d, 2, "answers", "[\"there\"]");
    }
    unload(&d);
    remove_folder(in_folder("out"));
    check_case("VQA v2: no annotations, no accuracy");
    CHECK_INT(cli(DATA "--data %F/" VQA_FILE " --dataset_name test --max_new_tokens 2"), 1);
    if (load_out(&d, "test_imgsizetier-low_crops1_topk1_blocks4.json")) CHECK(is_null(&d, row_at(&d, 0), "accuracy"));
    unload(&d);
    remove_folder(in_folder("out"));
}

/* the edited copy of a text must be refused as the questions' or the annotations' file */
static void refused_edit(int line, const char *file, const char *text, const char *from, const char *to, const char *words) {
    char edited[2000];
    const char *at = strstr(text, from);
    if (!CHECK(at != NULL)) return;
    snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    write_text(in_folder(file), edited);
    refused_at(__FILE__, line, DATA "--data %F/" VQA_FILE, NULL, 3, words);
    write_text(in_folder(file), text);
}
static void test_vqa_refusals(void) {
#define BAD_QUESTIONS(from, to, words) refused_edit(__LINE__, VQA_FILE, QUESTIONS, from, to, words)
#define BAD_NOTES(from, to, words) refused_edit(__LINE__, NOTES_FILE, ANNOTATIONS, from, to, words)
    check_case("VQA v2: refusals");
    make_vqa();
    for (size_t cut = sizeof QUESTIONS - 3; cut > 100; cut -= 5) { /* from inside the second question on */
        write_file(in_folder(VQA_FILE), QUESTIONS, cut);
        if (!REFUSED(DATA "--data %F/" VQA_FILE, 3, "questions.json")) break;
    }
    for (size_t cut = sizeof ANNOTATIONS - 2; cut > 11; cut -= 11) {
        write_text(in_folder(VQA_FILE), QUESTIONS);
        write_file(in_folder(NOTES_FILE), ANNOTATIONS, cut);
        if (!REFUSED(DATA "--data %F/" VQA_FILE, 3, "annotations.json")) break;
    }
    write_text(in_folder(NOTES_FILE), ANNOTATIONS);
    BAD_QUESTIONS("\"question_id\": 42000", "\"question_id\": \"42000\"", "whole \"question_id\"");
    BAD_QUESTIONS("\"image_id\": 7,", "\"image_id\": -7,", "whole \"image_id\"");
    BAD_QUESTIONS("\"question\": \"Where?\"", "\"question\": 1", "a question needs");
    BAD_QUESTIONS("\"question\": \"Where?\"", "\"question\": \"\\u0000\"", "\"question\" must be");
    BAD_QUESTIONS("\"val2014\"", "\"../x\"", "data_subtype");
    BAD_QUESTIONS("}], \"lic", "} \"lic", "a comma or the end of the array is missing");
    BAD_QUESTIONS("[]}", "[]} x", "behind the object");
    BAD_QUESTIONS("\"license\": []", "\"license\": [1,]", "questions.json");
    BAD_QUESTIONS("\"license\":", "\"license\"", "a colon is missing");
    BAD_QUESTIONS("\"license\":", "7:", "want a key");
    BAD_NOTES("\"question_id\": 1", "\"question_id\": 1.5", "whole \"question_id\"");
    BAD_NOTES("\"answers\": []", "\"answers\": 5", "\"answers\" must be an array");
    BAD_NOTES("{\"answer\": \"bus\"", "{\"answer\": 1", "needs a text");
    BAD_NOTES("\"annotations\":", "\"notes\":", "has no \"annotations\"");
    write_text(in_folder(NOTES_FILE), "{\"annotations\": [{\"question_id\": 3, \"answers\": []}]}");
    REFUSED(DATA "--data %F/" VQA_FILE, 3, "belongs to other ones");
    write_text(in_folder(VQA_FILE), "{\"data_subtype\": \"val2014\", \"questions\": [ ]}");
    REFUSED(DATA "--data %F/" VQA_FILE, 3, "questions.json");
    write_text(in_folder(VQA_FILE), QUESTIONS);
    write_text(in_folder(NOTES_FILE), ANNOTATIONS);
    REFUSED(DATA "--data %F/" VQA_FILE " --annotations %F/none.json", 3, "none.json");
    REFUSED(DATA "--data %F/" VQA_FILE " -p a", 2, "folder of images");
    REFUSED(DATA "--data %F/" VQA_FILE " --stratify_by colour", 2, "no record of");
    REFUSED(DATA "--data %F/" VQA_FILE " samples/questions.jsonl --annotations %F/x", 2, "one --data file");
    REFUSED(DATA "--data samples/questions.jsonl --annotations %F/" NOTES_FILE, 2, "--annotations");
    CHECK(access(in_folder("out"), F_OK) != 0);
}

static void test_folder_data(void) {
    char path[600];
    document d;
    check_case("a folder of images with one question, beside a file");
    make_vqa();
    snprintf(path, sizeof path, "%s/vqa/val2014/b.PNG", folder);
    write_text(path, "no image");
    snprintf(path, sizeof path, "%s/vqa/val2014/notes.txt", folder);
    write_text(path, "no image");
    CHECK_INT(cli(DATA "--data %F/vqa/val2014/ -p 'What?' --style own --max_new_tokens 2"), 1);
    if (load_out(&d, "val2014_imgsizetier-low_crops1_topk1_blocks4.json")) {
        CHECK_INT(number(&d, 0, "num_samples"), 2);
        check_row(&d, 0, 0, "ok", " User: own: What? Assistant:");
        check_row(&d, 1, 1, "failed", " User: own: What? Assistant:");
        check_metadata(&d, 1, "id", "b.PNG");
    }
    unload(&d);
    remove_folder(in_folder("out"));
    CHECK_INT(cli(DATA "--data %F/vqa/val2014 --dataset_name coco_caption --max_new_tokens 2 --seed 66"), 1);
    if (load_out(&d, "coco-caption_imgsizetier-low_crops1_topk1_blocks4.json")) { /* templates of goldens/prompts: seed 66, indices 0 and 1 */
        check_row(&d, 0, 0, "ok", " User: coco_captioning: Write a brief caption describing the image Assistant:");
        check_row(&d, 1, 1, "failed", " User: coco_captioning: Look and this image, and then summarize it in a sentence or two. Assistant:");
    }
    unload(&d);
    remove_folder(in_folder("out"));
    REFUSED(DATA "--data %F/vqa/val2014", 2, "-p TEXT");
    REFUSED(DATA "--data %F/vqa -p a", 3, "no image");
    REFUSED(DATA "--data %F/vqa/val2014 -p a --image_dir %F", 2, "--image_dir");
    REFUSED(DATA "--data %F/vqa/val2014 -p a --stratify_by id", 2, "--stratify_by");
    REFUSED(DATA "--data %F/vqa/val2014 -p a --annotations %F/x", 2, "--annotations");
    REFUSED(DATA "--data samples/questions.jsonl -p a", 2, "-p");
}

static void test_data_defaults(void) {
    document d;
    check_case("several files: each has its name, prompts and answer length");
    write_text(in_folder("text_vqa.jsonl"), "{\"question\": \"a\"}\n\n{\"question\": \"b\", \"style\": \"own\"}\n");
    write_text(in_folder("mixed.jsonl"), "{\"dataset\": \"mmmu\", \"question\": \"c\", \"options\": [\"<img='1'>\", \"<img='2'>\"], \"image\": \"gone.png\"}\n"
                                         "{\"questions\": [\"d\", \"e\"], \"style\": \"tally_qa\"}\n{\"dataset\": \"unknown\", \"question\": \"f\"}\n");
    CHECK_INT(cli(DATA "--data %F/text_vqa.jsonl %F/mixed.jsonl --ignore_eos"), 0);
    if (load_out(&d, "text-vqa_imgsizetier-low_crops0_topk1_blocks4.json")) {
        check_row(&d, 0, 0, "ok", " User: text_vqa: a Assistant:");
        check_row(&d, 1, 2, "ok", " User: own: b Assistant:");
        CHECK_INT(number(&d, 0, "max_new_tokens"), 64);
        CHECK_INT(number(&d, row_at(&d, 0), "output_tokens"), 64);
        CHECK_INT(number(&d, row_at(&d, 0), "total_sequence_length"), number(&d, row_at(&d, 0), "input_text_tokens") + 1);
    }
    unload(&d);
    if (load_out(&d, "mixed_imgsizetier-low_crops0_topk1_blocks4.json")) {
        check_row(&d, 0, 0, "ok", " User: a_okvqa_mc: c\nA: <img='1'>\nB: <img='2'>\n Assistant:");
        CHECK_INT(number(&d, row_at(&d, 0), "total_sequence_length"), number(&d, row_at(&d, 0), "input_text_tokens")); /* neither image nor BOS */
        check_row(&d, 1, 1, "ok", " User: tally_qa: d Assistant: User: tally_qa: e Assistant:");
        check_row(&d, 2, 2, "ok", " User: f Assistant:");
        CHECK_INT(number(&d, 0, "max_new_tokens"), 16);
        CHECK_INT(number(&d, row_at(&d, 0), "output_tokens"), 16);
    }
    unload(&d);
    remove_folder(in_folder("out"));
    check_case("records that agree set the answer length; --image_dir for JSONL");
    write_text(in_folder("mixed.jsonl"), "{\"dataset\": \"doc_qa\", \"question\": \"c\", \"image\": \"val2014/COCO_val2014_000000000042.jpg\"}\n");
    CHECK_INT(cli(DATA "--data %F/mixed.jsonl --image_dir %F/vqa --ignore_eos"), 0);
    if (load_out(&d, "mixed_imgsizetier-low_crops1_topk1_blocks4.json")) CHECK_INT(number(&d, row_at(&d, 0), "output_tokens"), 64);
    unload(&d);
    remove_folder(in_folder("out"));
    write_text(in_folder("mixed.jsonl"), "{\"question\": \"c\"}\n{\"question\": \"c\", \"hint\": \"h\", \"options\": [\"o\"]}\n");
    CHECK_INT(cli(DATA "--data %F/mixed.jsonl --dataset_name science_qa_img --max_new_tokens 1"), 0);
    if (load_out(&d, "science-qa-img_imgsizetier-low_crops0_topk1_blocks4.json")) {
        check_row(&d, 0, 0, "ok", " User: science_qa: c Assistant:");
        check_row(&d, 1, 1, "ok", " User: science_qa: h\nh\nA: o\n Assistant:");
    }
    unload(&d);
    remove_folder(in_folder("out"));
    write_text(in_folder("mixed.jsonl"), "{\"dataset\": \"science_qa_img\", \"question\": \"c\"}\n");
    REFUSED(DATA "--data %F/mixed.jsonl", 3, "no options");
}

static void test_stratify(void) {
    char text[4000] = "";
    document d;
    int count = 0;
    check_case("--stratify_by: shares of a field, in JSONL and in annotations");
    for (int i = 0; i < 40; i++) { /* 30 x "a", 9 x 1, 1 without */
        char line[96];
        snprintf(line, sizeof line, "{\"question\": \"q\"%s}\n", i == 17 ? "" : i % 4 ? ", \"kind\": \"a\"" : ", \"kind\": 1");
        strcat(text, line);
    }
    write_text(in_folder("kinds.jsonl"), text);
    CHECK_INT(cli(DATA "--data %F/kinds.jsonl --num_samples 8 --stratify_by kind --max_new_tokens 1"), 0);
    if (load_out(&d, "kinds_imgsizetier-low_crops0_topk1_blocks4.json")) {
        for (uint32_t i = 0; i < 8; i++) count += is_text(&d, member(&d, row_at(&d, i), "metadata"), "kind", "a");
        CHECK_INT(number(&d, 0, "num_samples"), 8);
        CHECK_INT(count, 6); /* of 8: 5.8, 2.0 and 0.2 */
    }
    unload(&d);
    remove_folder(in_folder("out"));
    make_vqa();
    CHECK_INT(cli(DATA "--data %F/" VQA_FILE " --num_samples 2 --stratify_by answer_type --max_new_tokens 1 --dataset_name s"), 1);
    if (load_out(&d, "s_imgsizetier-low_crops1_topk1_blocks4.json")) {
        CHECK(number(&d, row_at(&d, 0), "sample_id") <= 1); /* one yes/no, one other */
        CHECK_INT(number(&d, row_at(&d, 1), "sample_id"), 2);
    }
    unload(&d);
    remove_folder(in_folder("out"));
    REFUSED(DATA "--data %F/kinds.jsonl --stratify_by none", 2, "\"none\"");
    write_text(in_folder("kinds.jsonl"), "{\"question\": \"a\", \"kind\": 1}\n{\"question\" \"a\"}\n");
    REFUSED(DATA "--data %F/kinds.jsonl --stratify_by kind --num_samples 1", 3, "kinds.jsonl");
}

/* ---------------------------------------------------------------------------------------------------------------- sweep */
#define SWEEP "sweep --synthetic tiny --data %F/data/small_set.jsonl --output_dir %F/out --max_new_tokens 3 "
#define GRID "--tier_list low medium --top_k_list 1 2 --num_active_blocks_list 4 "
static const char *const RESULTS[] = {"small-set_imgsizetier-low_crops1_topk1_blocks4.json", "small-set_imgsizetier-low_crops1_topk2_blocks4.json",
                                      "small-set_imgsizetier-medium_crops6_topk1_blocks4.json", "small-set_imgsizetier-medium_crops6_topk2_blocks4.json"};
static const char ROW_KEYS[] =
    "sample_id target_vision_tokens target_crops actual_vision_tokens top_k num_active_blocks input_text_tokens output_tokens theoretical_num_crops "
    "theoretical_tiling theoretical_image_size theoretical_vision_tokens actual_num_crops actual_tiling actual_image_size accuracy pred metadata "
    "T_vision_total T_LLM_prefill T_LLM_decode T_total T_decode_per_token tier content_tokens ends_with_eos actual_text_tokens "
    "total_sequence_length T_decode_per_step stages stage_detail runs prompt status reason closure";
static const char CONFIG_KEYS[] =
    "tier tier_range selected_crops_mean selected_crops_std selected_crops_distribution target_vision_tokens_mean target_vision_tokens_std "
    "actual_vision_tokens_mean actual_vision_tokens_std max_crops top_k num_active_blocks num_total_blocks active_block_indices accuracy accuracy_std "
    "num_samples theoretical_num_crops theoretical_tiling theoretical_image_size theoretical_vision_tokens aggregate_stats latency_stats "
    "per_sample_results schema provenance config synthetic";

static char *result_path(int index) {
    static char path[4][600];
    snprintf(path[index], sizeof path[0], "%s/out/%s", folder, RESULTS[index]);
    return path[index];
}
static int count_results(void) {
    DIR *d = opendir(in_folder("out"));
    struct dirent *e;
    int count = 0;
    while (d && (e = readdir(d)) != NULL) count += strstr(e->d_name, "imgsize") != NULL;
    if (d) closedir(d);
    return count;
}
static int count_rows(void) { /* whole lines that close a point in the journal */
    char *text = check_read(in_folder("out/journal.jsonl"), NULL);
    int count = 0;
    for (const char *p = text, *end; p && *p && (end = strchr(p, '\n')) != NULL; p = end + 1) {
        const char *prev = strncmp(p, "{\"config\"", 9) ? NULL : strstr(p, "\"prev\": ");
        if (prev && prev < end) prev += strcspn(prev, ",");
        count += prev && prev < end && (!strncmp(prev, ", \"done\": ", 10) || !strncmp(prev, ", \"failed\": ", 12));
    }
    free(text);
    return count;
}

static void make_data(const char *third_line) {
    char text[2000], here[512] = "";
    CHECK(getcwd(here, sizeof here) != NULL);
    mkdir(in_folder("data"), 0777);
    snprintf(text, sizeof text,
             "{\"id\": \"one\", \"image\": \"%s/%s\", \"question\": \"What is it?\", \"answers\": [\"bus\", \"bus\", \"car\"], \"style\": \"vqa2\"}\n"
             "{\"id\": 2, \"image\": \"%s/%s\", \"question\": \"Which?\", \"options\": [\"red\", \"blue\"], \"answer\": 1, \"extra\": {\"x\": [1]}}\n%s",
             here, check_golden("images/img-200x150.png"), here, check_golden("images/img-333x517.png"), third_line);
    write_text(in_folder("data/small_set.jsonl"), text);
}

/* every statistic of a configuration is that of its rows */
static void check_statistics(const document *d, uint32_t rows) {
    static const char *const names[] = {"T_vision_total", "T_LLM_prefill", "T_LLM_decode", "T_total", "T_decode_per_token"};
    uint32_t stats = vp_json_get(&d->json, 0, "aggregate_stats"), again = vp_json_get(&d->json, 0, "latency_stats");
    for (int n = 0; n < 5; n++) {
        double values[64], scratch[64];
        size_t count = 0;
        char key[64];
        vp_statistics s;
        for (uint32_t i = rows + 1; i < d->nodes[rows].end && count < 64; i = d->nodes[i].end)
            if (isfinite(number(d, i, names[n]))) values[count++] = number(d, i, names[n]);
        if (!CHECK(vp_statistics_compute(values, count, scratch, &s) == VP_OK)) continue;
        snprintf(key, sizeof key, "%s_mean", names[n]);
        CHECK_NEAR(number(d, stats, key), s.mean, 0);
        snprintf(key, sizeof key, "%s_std", names[n]);
        CHECK_NEAR(number(d, stats, key), s.std, 0);
        snprintf(key, sizeof key, "%s_p95", names[n]);
        CHECK_NEAR(number(d, stats, key), s.p95, 0);
        CHECK_NEAR(number(d, again, key), s.p95, 0);
    }
    check_keys(d, stats, "T_decode_per_step_stats vision_tokens_mean vision_tokens_std vision_tokens_diff_mean T_total_p50 T_total_p99");
    CHECK_INT(d->nodes[vp_json_get(&d->json, stats, "T_decode_per_step_stats")].count, 2); /* 3 tokens, 2 steps */
    check_keys(d, vp_json_get(&d->json, vp_json_get(&d->json, stats, "T_decode_per_step_stats"), "pos_1"), "mean std p50 p95 p99 count");
}

static void check_result(int index) {
    document d;
    uint32_t rows, row, steps;
    if (!CHECK(load(&d, result_path(index)))) { unload(&d); return; }
    check_keys(&d, 0, CONFIG_KEYS);
    rows = vp_json_get(&d.json, 0, "per_sample_results");
    CHECK_INT(d.nodes[rows].count, 3);
    CHECK_INT(number(&d, 0, "num_samples"), 3);
    CHECK_INT(d.nodes[vp_json_get(&d.json, 0, "synthetic")].type, VP_JSON_TRUE);
    for (int i = 0; i < 3; i++) {
        row = vp_json_at(&d.json, rows, (uint32_t)i);
        check_keys(&d, row, ROW_KEYS);
        check_keys(&d, vp_json_get(&d.json, row, "metadata"), "question answers image_id id");
        CHECK_INT(number(&d, row, "sample_id"), i);
        CHECK(vp_json_equals(&d.json, vp_json_get(&d.json, row, "status"), "ok") && is_null(&d, row, "reason"));
        CHECK_INT(number(&d, row, "top_k"), index % 2 + 1);
        CHECK(number(&d, row, "T_total") >= number(&d, row, "T_LLM_prefill"));
        CHECK_INT(number(&d, row, "output_tokens"), 3);
        if (index % 2) check_stage_detail(&d, row, number(&d, row, "total_sequence_length"), 4); /* top_k 2 */
        steps = vp_json_get(&d.json, row, "T_decode_per_step");
        CHECK_INT(d.nodes[steps].count, 2);
        CHECK_INT(d.nodes[vp_json_at(&d.json, steps, 0)].count, 2);
        CHECK_NEAR(number(&d, row, "T_decode_per_token"), number(&d, row, "T_LLM_decode") / 2, 1e-9);
    }
    row = vp_json_at(&d.json, rows, 0);
    CHECK(isfinite(number(&d, row, "accuracy")));
    CHECK_NEAR(number(&d, 0, "accuracy"), number(&d, row, "accuracy"), 0); /* the only one with references */
    CHECK(vp_json_equals(&d.json, vp_json_get(&d.json, vp_json_get(&d.json, row, "metadata"), "id"), "one"));
    row = vp_json_at(&d.json, rows, 1);
    CHECK(is_null(&d, row, "accuracy") && !is_null(&d, row, "accuracy_reason"));
    CHECK(vp_json_equals(&d.json, vp_json_get(&d.json, row, "prompt"), " User: Which?\nA: red\nB: blue\n Assistant:"));
    row = vp_json_at(&d.json, rows, 2); /* text only */
    CHECK(is_null(&d, row, "T_vision_total") && is_null(&d, row, "actual_tiling") && number(&d, row, "T_total") > 0);
    check_statistics(&d, rows);
    unload(&d);
}

static void test_sweep(void) {
    char *before[4], *after;
    size_t bytes[4], after_bytes;
    int64_t started;
    check_case("sweep: files and rows");
    make_data("{\"id\": \"three\", \"question\": \"Only words?\", \"answers\": []}\n");
    CHECK_INT(cli(SWEEP GRID "--num_runs_per_sample 2 --ignore_eos"), 0);
    CHECK(last.out && !last.out_bytes && strstr(last.err, "synthetic weights"));
    CHECK(last.err_lines == 6 || (last.err_lines == 7 && strstr(last.err, "no CUDA"))); /* a table of 4 rows; a build for GPUs says where it went */
    CHECK(last.err && strstr(last.err, "TTFT      TPOT  tokens/s  accuracy\n") && strstr(last.err, "small-set_imgsizetier-low_crops1_topk1_blocks4 "));
    CHECK_INT(count_results(), 4);
    CHECK_INT(count_rows(), 12);
    for (int i = 0; i < 4; i++) check_result(i);
    check_case("sweep: run again, everything is there");
    for (int i = 0; i < 4; i++) before[i] = check_read(result_path(i), &bytes[i]);
    started = vp_clock_ns();
    CHECK_INT(cli(SWEEP GRID "--num_runs_per_sample 2 --ignore_eos"), 0);
    CHECK((double)(vp_clock_ns() - started) < 2e9);
    CHECK(last.err && strstr(last.err, "(0 measured now"));
    check_case("sweep: a lost file comes back from the journal, byte for byte");
    CHECK_INT(unlink(result_path(2)), 0);
    CHECK_INT(cli(SWEEP GRID "--num_runs_per_sample 2 --ignore_eos"), 0);
    CHECK(last.err && strstr(last.err, "(0 measured now"));
    for (int i = 0; i < 4; i++) {
        after = check_read(result_path(i), &after_bytes);
        CHECK(before[i] && after && bytes[i] == after_bytes && !memcmp(before[i], after, after_bytes));
        free(after);
        free(before[i]);
    }
    check_case("sweep: a grid can grow, another plan is refused");
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 1 3 --num_runs_per_sample 2 --ignore_eos"), 0);
    CHECK(last.err && strstr(last.err, "(3 measured now"));
    REFUSED(SWEEP GRID "--num_runs_per_sample 2 --ignore_eos --seed 7", 2, "another plan");
    REFUSED(SWEEP GRID "--num_runs_per_sample 1 --ignore_eos", 2, "another plan");
    CHECK_INT(unlink(in_folder("out/journal.jsonl")), 0);
    REFUSED(SWEEP GRID "--num_runs_per_sample 1 --ignore_eos", 2, "another plan");
    write_text(in_folder("out/journal.jsonl"), "something else\n");
    REFUSED(SWEEP GRID "--num_runs_per_sample 2 --ignore_eos", 2, "no journal");
    remove_folder(in_folder("out"));
    check_case("sweep: vision tokens instead of tiers");
    CHECK_INT(cli(SWEEP "--vision_tokens_list 432 --top_k_list 2 --num_runs_per_sample 1 --dataset_name my_task --num_samples 2"), 0);
    CHECK(access(in_folder("out/my-task_imgsizetokens432_topk2_blocks4.json"), F_OK) == 0);
    remove_folder(in_folder("out"));
}

static void test_sweep_strategies(void) {
    make_data("");
    write_text(in_folder("data/small_set.jsonl"), "{\"question\": \"Only words?\"}\n");
    check_case("sweep: a strategy visits its points, repeats once");
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 1 2 3 4 5 --num_active_blocks_list 3 4 --num_runs_per_sample 1 --sampling_strategy stratified"), 0);
    CHECK_INT(count_results(), 6); /* one tier, places 0, 2, 4 of top_k, both depths */
    CHECK(last.err && strstr(last.err, "repeats points 21 times"));
    CHECK(access(in_folder("out/small-set_imgsizetier-low_crops0_topk3_blocks4.json"), F_OK) == 0);
    check_case("sweep: a Latin hypercube has every value of the longest list");
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 1 2 3 4 5 --num_active_blocks_list 3 4 --num_runs_per_sample 1 --sampling_strategy lhs"), 0);
    for (int k = 1; k <= 5; k++) {
        int found = 0;
        for (int b = 3; b <= 4; b++) {
            char name[200];
            snprintf(name, sizeof name, "out/small-set_imgsizetier-low_crops0_topk%d_blocks%d.json", k, b);
            found += access(in_folder(name), F_OK) == 0;
        }
        CHECK(found >= 1);
    }
    remove_folder(in_folder("out"));
}

static void test_sweep_failures(void) {
    document d;
    check_case("sweep: an image that fails is a row that says so");
    make_data("{\"id\": 3, \"image\": \"cut.png\", \"question\": \"?\"}\n{\"id\": 4, \"image\": \"none.png\", \"question\": \"?\"}\n");
    {
        size_t bytes = 0;
        char *image = check_read(check_golden("images/img-640x300.png"), &bytes);
        if (CHECK(image != NULL)) write_file(in_folder("data/cut.png"), image, bytes / 2);
        free(image);
    }
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 2 --num_runs_per_sample 1"), 1);
    CHECK(last.out && !last.out_bytes && last.err_lines <= 4);
    if (CHECK(load(&d, result_path(1)))) {
        uint32_t rows = vp_json_get(&d.json, 0, "per_sample_results");
        CHECK_INT(d.nodes[rows].count, 4);
        CHECK_INT(number(&d, 0, "num_failed"), 2);
        for (uint32_t i = 2; i < 4; i++) {
            uint32_t row = vp_json_at(&d.json, rows, i);
            check_keys(&d, row, ROW_KEYS);
            CHECK(vp_json_equals(&d.json, vp_json_get(&d.json, row, "status"), "failed") && !is_null(&d, row, "reason"));
            CHECK(is_null(&d, row, "T_total") && is_null(&d, row, "T_LLM_decode") && is_null(&d, row, "accuracy") && is_null(&d, row, "pred"));
            CHECK(is_null(&d, row, "output_tokens"));
        }
    }
    unload(&d);
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 2 --num_runs_per_sample 1"), 1); /* finished, and still not good */
    CHECK(last.err && strstr(last.err, "(0 measured now, 2 failed)"));
    remove_folder(in_folder("out"));
    check_case("sweep: a sequence that does not fit");
    CHECK_INT(cli("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/out --num_samples 1 --tier_list low --max_new_tokens 4000"), 1);
    remove_folder(in_folder("out"));
}

/* Stops a sweep by a signal once it has measured some points; what it had stays, the rest follows. */
static void stop_and_resume(int signal_number, int code) {
    static const char command[] = SWEEP GRID "--num_runs_per_sample 6 --ignore_eos";
    char *kept, *whole;
    size_t kept_bytes = 0, whole_bytes = 0;
    pid_t child;
    int rows = 0;
    check_case("sweep: stopped by signal %d, then resumed", signal_number);
    child = start(command, NULL, in_folder("stdout"), 0);
    for (int i = 0; i < 3000 && rows < 2; i++) {
        pause_ms(10);
        rows = count_rows();
    }
    kill(child, signal_number);
    CHECK_INT(finish(child, in_folder("stdout")), code);
    rows = count_rows();
    CHECK(rows >= 2 && rows < 12);
    CHECK_INT(count_results(), 0);
    if (code == 130) CHECK(last.err && strstr(last.err, "run the same command again") && last.err_lines <= 4 && !last.out_bytes);
    kept = check_read(in_folder("out/journal.jsonl"), &kept_bytes);
    CHECK_INT(cli(command), 0);
    CHECK_INT(count_rows(), 12);
    CHECK_INT(count_results(), 4);
    whole = check_read(in_folder("out/journal.jsonl"), &whole_bytes);
    while (kept_bytes && kept[kept_bytes - 1] != '\n') kept_bytes--; /* a kill may tear the last line */
    CHECK(kept && whole && whole_bytes > kept_bytes && !memcmp(kept, whole, kept_bytes));
    free(kept);
    free(whole);
    remove_folder(in_folder("out"));
}

static void test_resume(void) {
    static const char command[] = SWEEP GRID "--num_runs_per_sample 1 --ignore_eos";
    char *text;
    size_t bytes = 0;
    make_data("{\"id\": \"three\", \"question\": \"Only words?\"}\n");
    stop_and_resume(SIGINT, 130);
    stop_and_resume(SIGTERM, 130);
    stop_and_resume(SIGKILL, -1);
    check_case("sweep: a torn last line is dropped");
    CHECK_INT(cli(command), 0);
    text = check_read(in_folder("out/journal.jsonl"), &bytes);
    for (int i = 0; i < 4; i++) unlink(result_path(i));
    if (CHECK(text != NULL)) write_file(in_folder("out/journal.jsonl"), text, bytes - 30); /* the last point's too */
    free(text);
    CHECK_INT(cli(command), 0);
    CHECK(last.err && strstr(last.err, "(1 measured now"));
    CHECK_INT(count_rows(), 12);
    CHECK_INT(count_results(), 4);
    remove_folder(in_folder("out"));
    check_case("sweep: the disk is full, then it is not");
    CHECK_INT(cli_with(command, NULL, in_folder("stdout"), 20000), 5);
    CHECK(last.err_lines >= 1 && last.err_lines <= 4 && strstr(last.err, "run the same command again"));
    CHECK(count_rows() > 0 && count_rows() < 12 && count_results() < 4);
    CHECK_INT(cli(command), 0);
    CHECK_INT(count_rows(), 12);
    CHECK_INT(count_results(), 4);
    remove_folder(in_folder("out"));
}

/* ----------------------------------------------------------------------------------------------------------------- convert */
static int same_files(const char *a, const char *b) {
    size_t a_bytes = 0, b_bytes = 0;
    char *x = check_read(a, &a_bytes), *y = check_read(b, &b_bytes);
    int same = x && y && a_bytes == b_bytes && !memcmp(x, y, a_bytes);
    free(x);
    free(y);
    return same;
}
/* files in a folder of the tests' folder; -1: no folder */
static int count_files(const char *name) {
    DIR *d = opendir(in_folder(name));
    struct dirent *e;
    int count = 0;
    if (!d) return -1;
    while ((e = readdir(d)) != NULL) count += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return count;
}
#define SAME_RUN "run %s -p 'What is behind the tower?' --gemm plain --device cpu --ignore_eos --max_new_tokens 5 --seed 7 --dump %%F/%s "
/* the model's own run and those of its two forms: ids, logits and tokens are the same, byte for byte */
static void same_runs(const char *model, const char *input) {
    static const char *const dumps[] = {"input_ids.npy", "image_features.npy", "block_last.npy", "logits.npy", "tokens.npy"};
    char words[1500], one[64], other[64];
    check_case("convert: %s and its two forms answer the same, bit by bit", input);
    snprintf(words, sizeof words, SAME_RUN "%s", check_golden("images/img-333x517.png"), "dump", model);
    CHECK_INT(cli(words), 0);
    for (int packed = 0; packed < 2; packed++) {
        snprintf(words, sizeof words, "convert %s %%F/form%d --layout %s", input, packed, packed ? "packed" : "hf --max_shard_mb 1");
        CHECK_INT(cli(words), 0);
        CHECK(last.out && !last.out_bytes && last.err_lines == 1 && strstr(last.err, packed ? "packed, 0.0" : "hf, 0.0"));
        snprintf(words, sizeof words, SAME_RUN "--model %%F/form%d", check_golden("images/img-333x517.png"), "dump2", packed);
        CHECK_INT(cli(words), 0);
        for (size_t i = 0; i < sizeof dumps / sizeof dumps[0]; i++) {
            snprintf(one, sizeof one, "dump/%s", dumps[i]);
            snprintf(other, sizeof other, "dump2/%s", dumps[i]);
            check_note(same_files(in_folder(one), in_folder(other)), __FILE__, __LINE__, "%s differs, packed %d", dumps[i], packed);
        }
        remove_folder(in_folder("dump2"));
    }
    remove_folder(in_folder("dump"));
}
static void stop_convert(int signal_number, int code) {
    pid_t child;
    check_case("convert: stopped by signal %d, nothing is half", signal_number);
    remove_folder(in_folder("big"));
    child = start("convert --synthetic molmoe-1b %F/big --layout packed --threads 1", NULL, in_folder("stdout"), 0);
    for (int i = 0; i < 2000 && count_files("big/.vlmprof-converting") < 3; i++) pause_ms(10);
    pause_ms(50);
    kill(child, signal_number);
    finish(child, in_folder("stdout"));
    if (last.code == 5 && last.err && strstr(last.err, "the weights need")) { check_skip("a convert that is stopped", "it needs 14.4 GB on the disk"); return; }
    CHECK_INT(last.code, code);
    if (code == 130) {
        CHECK_INT(count_files("big"), -1);
        CHECK(last.err_lines >= 1 && last.err_lines <= 4 && strstr(last.err, "stopped"));
        return;
    }
    CHECK_INT(count_files("big"), 1);
    REFUSED("run -p a --model %F/big", 3, "config.json");
    CHECK_INT(cli("convert --synthetic tiny %F/big"), 0); /* sweeps up what the killed one left */
    CHECK_INT(count_files("big"), 4);
    remove_folder(in_folder("big"));
}
static void test_convert_refusals(const char *tiny_a) {
    char words[800];
    check_case("convert: usage");
    REFUSED("convert", 2, "IN and OUT");
    REFUSED("convert a", 2, "IN and OUT");
    REFUSED("convert a b c", 2, "one operand too many");
    REFUSED("convert a b --synthetic tiny", 2, "no IN");
    REFUSED("convert --synthetic huge %F/x", 2, "molmoe-1b");
    REFUSED("convert a b --layout gguf", 2, "hf packed");
    REFUSED("convert a b --max_shard_mb 0", 2, "outside 1..");
    REFUSED("convert %F/none %F/x", 3, "no such folder");
    snprintf(words, sizeof words, "convert %s %%F/form0/../form0/../../%s", tiny_a, strrchr(folder, '/') + 1);
    REFUSED(words, 2, "not empty");
    REFUSED("convert %F/form0 %F/form0/", 2, "same folder");
    REFUSED("convert %F/form1 %F/x", 3, "packed already");
    write_text(in_folder("file"), "x");
    REFUSED("convert %F/form0 %F/file/x", 5, "file");
    REFUSED("convert %F/form0 %F/file", 5, "file");
    check_case("convert: checkpoints that are none");
    mkdir(in_folder("olmo"), 0777);
    write_text(in_folder("olmo/config.yaml"), "model:\n");
    write_text(in_folder("olmo/model.pt"), "x");
    REFUSED("convert %F/olmo %F/x", 3, "OLMo's original training format");
    REFUSED("info --model %F/olmo", 3, "OLMo's original training format");
    link_model(check_golden("models/tiny-a"), in_folder("model"), "model.safetensors");
    write_text(in_folder("model/pytorch_model.bin"), "x");
    REFUSED("convert %F/model %F/x", 3, "execute code");
    REFUSED("run -p a --model %F/model", 3, "safe_serialization=True");
    CHECK_INT(count_files("x"), -1); /* a refused convert leaves nothing behind */
}
static void test_convert_packed(void) {
    document d;
    size_t bytes = 0;
    char *file = check_read(in_folder("form1/model.packed"), &bytes);
    check_case("convert: what packed weights do not do");
    REFUSED("run -p a --model %F/form1 --weights fp32", 3, "fp32 needs the folder");
    REFUSED("selftest --model %F/form1", 3, "selftest compares with fp32");
    if (cli_json("info --model %F/form1 --json", 0, &d)) {
        uint32_t m = member(&d, 0, "model");
        CHECK(number(&d, m, "files") == 1 && number(&d, m, "file_bytes") == (double)bytes);
        CHECK(d.nodes[member(&d, m, "packed")].type == VP_JSON_TRUE);
        free(d.nodes);
    }
    CHECK_INT(cli("info --model %F/form1"), 0);
    CHECK(last.out && strstr(last.out, "packed for the CPU, bf16"));
    check_case("convert: damaged packed weights");
    if (!CHECK(file != NULL)) return;
    write_file(in_folder("form1/model.packed"), file, bytes - 1);
    REFUSED("run -p a --model %F/form1", 3, "truncated");
    REFUSED("info --model %F/form1", 3, "truncated");
    file[100] ^= 1;
    write_file(in_folder("form1/model.packed"), file, bytes);
    REFUSED("run -p a --model %F/form1", 3, "header is damaged");
    file[100] ^= 1;
    write_file(in_folder("form1/model.packed"), file, bytes);
    write_text(in_folder("form1/model.safetensors"), "x");
    REFUSED("run -p a --model %F/form1", 3, "beside model.packed");
    unlink(in_folder("form1/model.safetensors"));
    free(file);
    file = check_read(in_folder("form1/config.json"), NULL);
    if (CHECK(file != NULL) && CHECK(strstr(file, "\"n_layers\": 4") != NULL)) {
        *(strstr(file, "\"n_layers\": 4") + strlen("\"n_layers\": ")) = '3';
        write_text(in_folder("form1/config.json"), file);
        REFUSED("run -p a --model %F/form1", 3, "another config.json");
    }
    free(file);
}
static void test_convert_folder(void) {
    document d;
    check_case("convert: its own output is replaced, whole; others' files stay");
    write_text(in_folder("form0/notes"), "mine");
    CHECK_INT(cli("convert --synthetic tiny %F/form0 --layout packed"), 0);
    CHECK_INT(count_files("form0"), 5); /* config.json, tokenizer.json, model.packed, the list, the notes */
    CHECK(access(in_folder("form0/notes"), F_OK) == 0 && access(in_folder("form0/model.packed"), F_OK) == 0);
    CHECK_INT(cli("run -p a --model %F/form0 --device cpu --max_new_tokens 1"), 0);
    if (CHECK(load(&d, in_folder("form0/vlmprof_convert.json")))) {
        CHECK(is_text(&d, 0, "schema", "vlmprof-convert-1") && is_text(&d, 0, "layout", "packed") && is_text(&d, 0, "synthetic", "tiny"));
        CHECK_INT(d.nodes[member(&d, 0, "files")].count, 3);
        unload(&d);
    }
    write_text(in_folder("form0/model.safetensors"), "mine");
    REFUSED("convert --synthetic tiny %F/form0", 2, "model.safetensors is not of an earlier convert");
    CHECK(count_files("form0") == 6 && access(in_folder("form0/model.packed"), F_OK) == 0);
    unlink(in_folder("form0/model.safetensors"));
    check_case("convert: an empty folder is filled, a foreign one is not touched");
    mkdir(in_folder("empty"), 0777);
    CHECK_INT(cli("convert --synthetic tiny %F/empty"), 0);
    CHECK_INT(count_files("empty"), 4);
    unlink(in_folder("empty/vlmprof_convert.json"));
    REFUSED("convert --synthetic tiny %F/empty", 2, "not empty");
    write_text(in_folder("empty/vlmprof_convert.json"), "{\"schema\": \"vlmprof-convert-1\", \"files\": [\"../notes\"]}");
    REFUSED("convert --synthetic tiny %F/empty", 2, "not empty");
    CHECK_INT(count_files("empty"), 4);
    check_case("convert: the disk is full, then it is not");
    for (int packed = 0; packed < 2; packed++)
        for (long limit = 500; limit < 3000000; limit *= 50) {
            CHECK_INT(cli_with(packed ? "convert --synthetic tiny %F/full --layout packed" : "convert --synthetic tiny %F/full", NULL,
                               in_folder("stdout"), limit), 5);
            CHECK(last.err_lines >= 1 && last.err_lines <= 4 && !last.out_bytes);
            CHECK_INT(count_files("full"), -1);
        }
    CHECK_INT(cli_with("convert --synthetic tiny %F/form0", NULL, in_folder("stdout"), 100000), 5);
    CHECK_INT(cli("run -p a --model %F/form0 --device cpu --max_new_tokens 1"), 0); /* the earlier one still stands */
    remove_folder(in_folder("empty"));
}
static void test_convert(void) {
    static char tiny_a[600], emulated[300];
    char words[700];
    const char *ours = program;
    if (!check_golden("models/tiny-a")) { check_skip("convert", "golden models not found"); return; }
    snprintf(tiny_a, sizeof tiny_a, "%s", check_golden("models/tiny-a"));
    same_runs("--synthetic tiny", "--synthetic tiny --seed 7");
    remove_folder(in_folder("form0"));
    remove_folder(in_folder("form1"));
    snprintf(words, sizeof words, "--model %s", tiny_a);
    same_runs(words, tiny_a);
    CHECK_INT(count_files("form1"), 9); /* seven small files, the weights, the list */
    test_convert_refusals(tiny_a);
    snprintf(emulated, sizeof emulated, "%s/emulated/vlmprof", getenv("B") ? getenv("B") : "build");
    if (access(emulated, X_OK)) check_skip("packed weights and a GPU", "the command with an emulated GPU was not built (make test builds it)");
    else {
        check_case("convert: packed weights are not for a GPU, and auto does not fall back");
        program = emulated;
        REFUSED("run -p a --model %F/form1 --device cuda", 3, "laid out for the CPU; a GPU needs the folder");
        REFUSED("run -p a --model %F/form1", 3, "or use --device cpu");
        CHECK_INT(cli("run -p a --model %F/form1 --device cpu --max_new_tokens 1"), 0);
        CHECK_INT(cli("run -p a --model %F/form0 --device cuda --max_new_tokens 1"), 0);
        program = ours;
    }
    test_convert_packed();
    test_convert_folder();
    stop_convert(SIGINT, 130);
    stop_convert(SIGTERM, 130);
    stop_convert(SIGKILL, -1);
    remove_folder(in_folder("form0"));
    remove_folder(in_folder("form1"));
    remove_folder(in_folder("olmo"));
}

/* ------------------------------------------------------------------------------------------------------- info and selftest */
static int has_gpu; /* this machine's, for $PROGRAM */

static void test_info(void) {
    document d;
    uint32_t cpu, m, parameters;
    char command[600];
    struct stat info;
    check_case("info: this machine");
    CHECK_INT(cli("info"), 0);
    CHECK(last.out && strstr(last.out, VLMPROF_VERSION) && strstr(last.out, "\ncpu ") && strstr(last.out, "plain") && strstr(last.out, "\ngpu ") && !*last.err);
    if (cli_json("info --json", 0, &d)) {
        cpu = member(&d, 0, "cpu");
        check_keys(&d, 0, "schema version compiler cuda_toolkit cpu gpus gpus_note model");
        check_keys(&d, cpu, "name threads memory_bytes available_bytes gemm gemm_bf16 gemm_fp32");
        check_keys(&d, member(&d, cpu, "gemm_fp32"), "rows_1 rows_8 rows_1024");
        CHECK(is_text(&d, 0, "version", VLMPROF_VERSION) && is_null(&d, 0, "model"));
        CHECK(number(&d, cpu, "threads") >= 1 && number(&d, cpu, "memory_bytes") >= number(&d, cpu, "available_bytes") && number(&d, cpu, "available_bytes") > 1e8);
        has_gpu = d.nodes[member(&d, 0, "gpus")].count > 0;
        CHECK(has_gpu == is_null(&d, 0, "gpus_note")); /* GPUs, or the reason why there is none */
        free(d.nodes);
    }
    check_case("info: checkpoints");
    snprintf(command, sizeof command, "info --model %s --json", check_golden("models/tiny-b"));
    if (cli_json(command, 0, &d)) {
        m = member(&d, 0, "model");
        parameters = member(&d, m, "parameters");
        CHECK_INT(number(&d, m, "tensors"), number(&d, member(&d, m, "dtypes"), "F32") + number(&d, member(&d, m, "dtypes"), "BF16"));
        CHECK(number(&d, member(&d, m, "dtypes"), "F32") > 0 && number(&d, member(&d, m, "dtypes"), "BF16") > 0);
        CHECK_INT(number(&d, parameters, "total"), number(&d, parameters, "vision") + number(&d, parameters, "experts") + number(&d, parameters, "other_llm")
                                                       + number(&d, parameters, "embeddings_and_head"));
        CHECK_INT(number(&d, parameters, "experts"), 3 * 64 * 3 * 256 * 8);               /* blocks, experts, matrices, width, expert width */
        CHECK_INT(number(&d, parameters, "embeddings_and_head"), (704 + 16 + 704) * 256);
        CHECK_INT(number(&d, member(&d, m, "bf16"), "kv_cache_bytes_per_token"), 2 * 2 * 256 * 3);
        CHECK_INT(number(&d, member(&d, m, "fp32"), "weights_bytes"), 4 * number(&d, parameters, "total"));
        CHECK_INT(number(&d, m, "tokenizer_size"), 660); /* the goldens' README: the ids end at 659 */
        CHECK_INT(number(&d, m, "files"), 2);
        CHECK_INT(number(&d, m, "vit_blocks_needed"), 9);
        free(d.nodes);
    }
    snprintf(command, sizeof command, "%s/model.safetensors", check_golden("models/tiny-a"));
    CHECK_INT(stat(command, &info), 0);
    snprintf(command, sizeof command, "info --model %s --json", check_golden("models/tiny-a"));
    if (cli_json(command, 0, &d)) {
        CHECK_INT(number(&d, member(&d, 0, "model"), "file_bytes"), info.st_size);
        free(d.nodes);
    }
    CHECK_INT(cli("info --synthetic molmoe-1b"), 0);
    CHECK(last.out && strstr(last.out, "16 blocks of width 2048") && strstr(last.out, "64 experts of width 1024, top_k 8") && strstr(last.out, "7222 M"));
}

/* Every check of a selftest's JSON is OK and within its limits; returns how many are of `backend`. */
static int check_selftest(const document *d, const char *backend) {
    uint32_t checks = member(d, 0, "checks");
    int found = 0;
    CHECK_INT(number(d, 0, "failed"), 0);
    CHECK_INT(number(d, 0, "passed"), d->nodes[checks].count);
    CHECK_INT(d->nodes[member(d, 0, "requests")].count, 3);
    for (uint32_t i = checks + 1; i < d->nodes[checks].end; i = d->nodes[i].end) {
        CHECK_INT(d->nodes[member(d, i, "ok")].type, VP_JSON_TRUE);
        CHECK(number(d, i, "image_features_error") <= number(d, i, "image_features_limit") && number(d, i, "logits_error") <= number(d, i, "logits_limit"));
        CHECK(number(d, i, "routed_logits_error") <= number(d, i, "routed_logits_limit") && number(d, i, "logits_limit") < 0.1);
        if (is_text(d, i, "weights", "fp32")) CHECK(number(d, i, "logits_limit") <= 2e-5 && number(d, i, "tokens_equal") == number(d, i, "tokens"));
        else CHECK(number(d, i, "logits_error") > 1e-4); /* bf16 is another arithmetic: it was really run */
        CHECK(number(d, i, "ms_per_request") > 0);
        found += is_text(d, i, "backend", backend);
    }
    return found;
}

static void test_selftest(void) {
    document d, machine;
    char command[600], *text;
    size_t bytes = 0;
    int kernels = 0;
    check_case("selftest: every GEMM kernel of this processor in bf16, and those with fp32 arithmetic");
    if (cli_json("info --json", 0, &machine)) {
        kernels = (int)machine.nodes[member(&machine, member(&machine, 0, "cpu"), "gemm")].count;
        free(machine.nodes);
    }
    if (cli_json("selftest --device cpu --json", 0, &d)) {
        int checks = check_selftest(&d, "cpu");
        CHECK(checks > kernels && checks <= 2 * kernels);
        CHECK(is_text(&d, 0, "cuda_skipped", "not asked for"));
        free(d.nodes);
    }
    check_case("selftest: a checkpoint, as text; all backends there are");
    snprintf(command, sizeof command, "selftest --model %s --threads 2", check_golden("models/tiny-a"));
    CHECK_INT(cli(command), 0);
    CHECK(last.out && strstr(last.out, "cpu  fp32 plain") && strstr(last.out, " 0 failed, ") && !strstr(last.out, "FAILED"));
    CHECK(last.out && strstr(last.out, has_gpu ? "cuda fp32" : "cuda: skipped: ") && !strstr(last.out, has_gpu ? "cuda: skipped: " : "cuda fp32"));
    check_case("selftest: a reference that cannot be");
    link_model(check_golden("models/tiny-a"), in_folder("model"), "model.safetensors");
    snprintf(command, sizeof command, "%s/model.safetensors", check_golden("models/tiny-a"));
    text = check_read(command, &bytes);
    if (CHECK(text != NULL)) {
        memset(text + bytes / 2, 0xff, bytes / 4); /* NaN */
        write_file(in_folder("model/model.safetensors"), text, bytes);
        REFUSED("selftest --model %F/model", 3, "not numbers");
    }
    free(text);
}

/* ------------------------------------------------------------------------------------------------------------------ devices */
static void test_no_device(void) {
    check_case("a GPU that is not there: exit 4, one line, nothing left behind");
    static const char *const commands[] = {"run -p a --synthetic tiny --device cuda:999", "selftest --device cuda:999",
                                           "sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --device cuda:999"};
    for (int i = 0; i < 3; i++) {
        char command[200];
        REFUSED(commands[i], 4, "cuda:999");
        CHECK_INT(last.err_lines, 1);
        snprintf(command, sizeof command, "%.*s", (int)strlen(commands[i]) - 4, commands[i]);
        if (has_gpu) continue;
        REFUSED(command, 4, "--device cuda: ");
        CHECK_INT(last.err_lines, 1);
    }
    CHECK(access(in_folder("x"), F_OK) != 0);
}

/* One line and exit 4 when a setting of the emulated GPU makes it unusable; `auto` takes the CPU and says why, or has the same error. */
static void broken_gpu(const char *name, const char *value, const char *words, int automatic) {
    document d;
    check_case("a GPU with %s=%s", name, value);
    setenv(name, value, 1);
    REFUSED("run -p a --synthetic tiny --max_new_tokens 1 --device cuda", 4, words);
    CHECK_INT(last.err_lines, 1);
    if (automatic) REFUSED("run -p a --synthetic tiny --max_new_tokens 1", automatic, words);
    else {
        if (cli_json("run -p a --synthetic tiny --max_new_tokens 1 --json", 0, &d)) {
            uint32_t from = member(&d, 0, "provenance"), device = member(&d, from, "device");
            CHECK(!strncmp(d.json.text + d.nodes[device].start, "cpu: ", 5) && !is_null(&d, from, "device_note") && is_null(&d, from, "gpu"));
            free(d.nodes);
        }
        CHECK_INT(cli("run -p a --synthetic tiny --max_new_tokens 1"), 0);
        CHECK(last.out && strstr(last.out, "(no CUDA: ") && strstr(last.out, words));
        CHECK_INT(cli("info"), 0);
        CHECK(last.out && strstr(last.out, "\ngpu         none: ") && strstr(last.out, words));
    }
    unsetenv(name);
}

static void test_emulated(void) {
    static char path[300];
    const char *ours = program;
    document d;
    snprintf(path, sizeof path, "%s/emulated/vlmprof", getenv("B") ? getenv("B") : "build");
    if (access(path, X_OK)) { check_skip("the command with an emulated GPU", "it was not built (make test builds it)"); return; }
    program = path;
    setenv("CUDA_ON_CPU_DEVICES", "2", 1);
    check_case("emulated: info names the GPUs");
    if (cli_json("info --json", 0, &d)) {
        uint32_t gpu = vp_json_at(&d.json, member(&d, 0, "gpus"), 1);
        CHECK_INT(d.nodes[member(&d, 0, "gpus")].count, 2);
        check_keys(&d, gpu, "index name compute_capability multiprocessors memory_bytes free_bytes driver runtime");
        CHECK(number(&d, gpu, "index") == 1 && is_text(&d, gpu, "compute_capability", "9.0") && is_text(&d, gpu, "driver", "13.0"));
        CHECK(!is_null(&d, 0, "cuda_toolkit") && is_null(&d, 0, "gpus_note"));
        free(d.nodes);
    }
    check_case("emulated: auto is the first GPU, cuda:1 the second, cuda:2 is none");
    if (cli_json("run -p 'Where is it?' --synthetic tiny --max_new_tokens 3 --ignore_eos --json", 0, &d)) {
        uint32_t from = member(&d, 0, "provenance"), s = member(&d, 0, "stages");
        double sum = number(&d, 0, "unaccounted");
        CHECK(!strncmp(d.json.text + d.nodes[member(&d, from, "device")].start, "cuda:0: ", 8) && is_null(&d, from, "device_note"));
        CHECK(number(&d, member(&d, from, "gpu"), "index") == 0);
        check_stage_detail(&d, 0, number(&d, 0, "total_sequence_length"), 4);
        for (int i = 0; i < 10; i++) if (i != 2 && i != 3) sum += number(&d, s, stages[i]);
        CHECK_NEAR(sum, number(&d, 0, "T_total"), 1e-6 * sum); /* of the device's times, not of the host's */
        CHECK(number(&d, member(&d, member(&d, 0, "stage_detail"), "prefill"), "wall_ms") > number(&d, s, "prefill"));
        free(d.nodes);
    }
    CHECK_INT(cli("run -p a --synthetic tiny --max_new_tokens 1 --device cuda:1"), 0);
    CHECK(last.out && strstr(last.out, "device   cuda:1: "));
    REFUSED("run -p a --synthetic tiny --max_new_tokens 1 --device cuda:2", 4, "cuda:2");
    setenv("CUDA_ON_CPU_DEVICES", "1", 1);
    broken_gpu("CUDA_ON_CPU_DEVICES", "0", "", 0);
    broken_gpu("CUDA_ON_CPU_DRIVER", "0", "driver", 0);
    broken_gpu("CUDA_ON_CPU_DRIVER", "12000", "driver", 0);
    broken_gpu("CUDA_ON_CPU_CAPABILITY", "7.5", "7.5", 4);
    broken_gpu("CUDA_ON_CPU_CUBLAS", "0", "cuBLAS", 4);
    broken_gpu("CUDA_ON_CPU_MEMORY", "1000000", "GB", 4);
    broken_gpu("CUDA_ON_CPU_FAIL", "launch:5", "cuda", 4);
    check_case("emulated: selftest finds GPU and CPU equal");
    if (cli_json("selftest --device cuda --json", 0, &d)) {
        CHECK_INT(check_selftest(&d, "cuda"), 2);
        CHECK_INT(d.nodes[member(&d, 0, "checks")].count, 3); /* and the yardstick of bf16 */
        CHECK(is_null(&d, 0, "cuda_skipped"));
        free(d.nodes);
    }
    check_case("emulated: a GPU that fails in selftest is a failed check");
    setenv("CUDA_ON_CPU_FAIL", "illegal:3", 1);
    CHECK_INT(cli("selftest --device cuda"), 1);
    CHECK(last.out && strstr(last.out, "cuda bf16 cublas     FAILED: ") && strstr(last.out, "2 passed, 1 failed, 0 skipped"));
    unsetenv("CUDA_ON_CPU_FAIL");
    check_case("emulated: a sweep on a GPU is not gone on with on the CPU");
    mkdir(in_folder("data"), 0777);
    write_text(in_folder("data/small_set.jsonl"), "{\"question\": \"Only words?\"}\n");
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 1 --num_runs_per_sample 1"), 0);
    CHECK(last.err_lines == 3 && !strstr(last.err, "device:")); /* auto took the GPU: nothing to say */
    setenv("CUDA_ON_CPU_DEVICES", "0", 1);
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 1 2 --num_runs_per_sample 1"), 4);
    CHECK(last.err && strstr(last.err, "no CUDA: ") && strstr(last.err, "were measured on cuda:0: ") && last.err_lines <= 4);
    CHECK_INT(count_rows(), 1);
    setenv("CUDA_ON_CPU_DEVICES", "1", 1);
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 1 2 --num_runs_per_sample 1"), 0);
    CHECK_INT(count_rows(), 2);
    unsetenv("CUDA_ON_CPU_DEVICES");
    remove_folder(in_folder("out"));
    program = ours;
}

/* ---------------------------------------------------------------------------------------------------- score and rescore */
/* the same value: numbers within the tolerance (relative, absolute below 1) */
static int same_value(const document *a, uint32_t i, const document *b, uint32_t k, double tolerance) {
    const vp_json_node *x, *y;
    double p, q;
    if (i == VP_JSON_NONE || k == VP_JSON_NONE) return 0;
    x = &a->nodes[i];
    y = &b->nodes[k];
    if (x->type != y->type) return 0;
    if (x->type == VP_JSON_NUMBER)
        return vp_json_to_double(&a->json, i, &p) == VP_OK && vp_json_to_double(&b->json, k, &q) == VP_OK
            && fabs(p - q) <= tolerance * (fabs(q) > 1 ? fabs(q) : 1);
    if (x->type == VP_JSON_STRING) { /* unescaped; \u0000 too */
        static char one[1 << 16], other[1 << 16];
        size_t bytes = 0, more = 0;
        return vp_json_text(&a->json, i, one, sizeof one, &bytes) == VP_OK && vp_json_text(&b->json, k, other, sizeof other, &more) == VP_OK
            && bytes == more && !memcmp(one, other, bytes);
    }
    if (x->type == VP_JSON_ARRAY) {
        if (x->count != y->count) return 0;
        for (uint32_t n = 0; n < x->count; n++)
            if (!same_value(a, vp_json_at(&a->json, i, n), b, vp_json_at(&b->json, k, n), tolerance)) return 0;
        return 1;
    }
    return x->type != VP_JSON_OBJECT; /* the rows hold none */
}
/* Every column of a golden row that the row's reader did not get as input is in the program's row, with the same value. */
static int check_columns(const document *got, uint32_t row, const document *want, uint32_t golden, double tolerance) {
    static const char inputs[] = " ascii prediction references reference options option_names answer_index answer text question_type answer_type choices"
        " precision dataset has_transparent_box abc_label error candidate ";
    static const char free_columns[] = " score parsed each predicted_index "; /* where the reference stops or guesses */
    int is_free = member(want, golden, "error") != VP_JSON_NONE, good = 1;
    char key[64], word[72];
    if (want->nodes[golden].count && member(want, golden, "unparsed") != VP_JSON_NONE)
        is_free |= want->nodes[member(want, golden, "unparsed")].type == VP_JSON_TRUE;
    for (uint32_t i = golden + 1; good && i < want->nodes[golden].end; i = want->nodes[i + 1].end) {
        if (!CHECK(vp_json_text(&want->json, i, key, sizeof key, NULL) == VP_OK)) return 0;
        snprintf(word, sizeof word, " %s ", key);
        if (strstr(inputs, word) || (is_free && strstr(free_columns, word))) continue;
        good = check_note(same_value(got, member(got, row, key), want, i + 1, tolerance), __FILE__, __LINE__, "id %g, column %s",
                          number(want, golden, "id"), key);
    }
    return good;
}
/* every row and column of a golden file by way of the program: a score, or null and a reason */
static void check_scored(const char *metric, const char *file) {
    char command[600];
    const char *path, *got, *want;
    char *text = NULL;
    document g, w;
    int rows = 0, good = 1;
    snprintf(command, sizeof command, "scores/%s.jsonl", file);
    path = check_golden(command);
    if (!path || (text = check_read(path, NULL)) == NULL) { check_skip(command, "golden file not found"); return; }
    check_case("score --metric %s gives the columns of %s", metric, file);
    snprintf(command, sizeof command, "score --metric %s %s", metric, path);
    CHECK_INT(cli(command), 0);
    CHECK_INT(last.err_lines, 1);
    CHECK(last.err && strstr(last.err, metric) && strstr(last.err, " rows") && strstr(last.err, "without a score"));
    for (got = last.out, want = text; got && *got && *want && good; rows++) {
        size_t got_bytes = strcspn(got, "\n"), want_bytes = strcspn(want, "\n");
        good = CHECK(parse(&g, got, got_bytes)) && CHECK(parse(&w, want, want_bytes)) && check_columns(&g, 0, &w, 0, 1e-12)
            && CHECK(member(&g, 0, "score") != VP_JSON_NONE && !is_null(&g, 0, "score") == (member(&g, 0, "reason") == VP_JSON_NONE));
        free(g.nodes);
        free(w.nodes);
        got += got_bytes + (got[got_bytes] == '\n');
        want += want_bytes + (want[want_bytes] == '\n');
    }
    CHECK(rows > 100 && got && !*got && !*want);
    free(text);
}

/* captions.json: one line a set, each with its images' and its corpus' scores */
static void test_caption_scores(void) {
    const char *path = check_golden("scores/captions.json"), *got;
    char command[600];
    document w, g;
    uint32_t sets, i, k;
    if (!path || !load(&w, path)) { check_skip("scores/captions.json", "golden file not found"); return; }
    check_case("score --metric captions gives the columns of captions.json");
    snprintf(command, sizeof command, "score --metric captions %s", path);
    CHECK_INT(cli(command), 0);
    sets = member(&w, 0, "sets");
    CHECK_INT(last.err_lines, w.nodes[sets].count);
    CHECK(last.err && strstr(last.err, "built-in tokenizer"));
    for (i = 0, got = last.out; got && *got && i < w.nodes[sets].count; i++, got += strcspn(got, "\n") + 1) {
        uint32_t set = vp_json_at(&w.json, sets, i), golden = member(&w, set, "images"), images;
        if (!CHECK(parse(&g, got, strcspn(got, "\n")))) break;
        images = member(&g, 0, "images");
        CHECK(same_value(&g, member(&g, 0, "name"), &w, member(&w, set, "name"), 0));
        CHECK_INT(g.nodes[images].count, w.nodes[golden].count);
        for (k = 0; k < w.nodes[golden].count && k < g.nodes[images].count; k++)
            check_columns(&g, vp_json_at(&g.json, images, k), &w, vp_json_at(&w.json, golden, k), 1e-10);
        check_columns(&g, member(&g, 0, "corpus"), &w, member(&w, set, "corpus"), 1e-10);
        CHECK_NEAR(number(&g, 0, "score"), number(&w, member(&w, set, "corpus"), "cider_d"), 1e-10);
        free(g.nodes);
    }
    CHECK(got && !*got && i == w.nodes[sets].count);
    unload(&w);
    check_case("score: captions as lines; a row without a score is left out of the corpus, the last row has the corpus");
    CHECK_INT(cli_with("score --metric BLEU-1", "{\"id\": \"a\", \"prediction\": \"A Dog.\", \"references\": [\"a dog\"]}\n{\"id\": 2, \"prediction\": \"x\"}\n"
                       "{\"image_id\": 3, \"caption\": \"two cats\", \"captions\": [\"Two cats!\", \"cats\"]}\n", in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "{\"id\": \"a\", \"bleu\": [") && strstr(last.out, "{\"id\": 2, \"bleu\": null, \"cider_d\": null, \"rouge_l\": null, "
          "\"score\": null, \"reason\": \"the row has no references to compare with\"}\n{\"image_id\": 3, "));
    CHECK(last.out && strstr(last.out, "\"corpus\": {") && strstr(last.out, "\"images\": 2, \"tokenizer\": \"built-in tokenizer\"}}\n"));
    CHECK_INT(cli_with("score --metric bleu_1 --clean none", "[{\"prediction\": \"A Dog.\", \"references\": [\"a dog\"]}, 3]", in_folder("stdout"), 0), 3);
    CHECK(last.out && strstr(last.out, "\"tokenizer\": null") && strstr(last.out, "line 2: want one JSON object of an image"));
    CHECK_INT(cli_with("score --metric rouge_l", "{\"images\": []}\nx\n{\"images\": [1, {\"candidate\": \"a\", \"references\": [\"a\"]}]}", in_folder("stdout"), 0), 3);
    CHECK(last.out && strstr(last.out, "no image of the set") && strstr(last.out, "line 2: ") && strstr(last.out, "\"score\": 1.0}\n"));
    REFUSED("score --metric cider --clean run %F/none", 3, "none");
    write_text(in_folder("rows.jsonl"), "{}\n");
    REFUSED("score --metric cider --clean run %F/rows.jsonl", 2, "built-in tokenizer");
    REFUSED("sweep --synthetic tiny --data x --output_dir %F/x --metric CIDEr-D", 2, "rescore RESULT.json --metric cider");
}

static void test_score(void) {
    check_scored("vqa_seed", "vqa_seed");
    check_scored("vqa_official", "vqa_official");
    check_scored("em", "em");
    check_scored("anls", "anls");
    check_scored("relaxed", "relaxed_correctness");
    check_scored("relaxed_correctness", "relaxed_correctness");
    check_scored("mc", "mc");
    check_scored("mc_ai2d", "mc_ai2d");
    check_scored("mmmu", "mmmu_multiple_choice");
    check_scored("mmmu", "mmmu_open");
    check_scored("mmmu_open", "mmmu_open");
    check_scored("a_okvqa", "a_okvqa_score");
    check_scored("real_world_qa", "real_world_qa");
    check_scored("seed_bench", "seed_bench");
    check_scored("math_vista_local", "math_vista_local");
    check_scored("caption_jaccard", "caption_jaccard");
    test_caption_scores();
    check_case("score: rows from stdin, what each rule shows, and a summary");
    CHECK_INT(cli_with("score --metric mmmu", "{\"id\": \"x\", \"prediction\": \"no idea\", \"options\": [\"a\", \"b\"], \"answer\": \"A\"}\n\n"
                       "{\"prediction\": \"It is (B).\", \"options\": [\"a\", \"b\"], \"answer\": 1}", in_folder("stdout"), 0), 0);
    CHECK_TEXT(last.out, "{\"id\": \"x\", \"unparsed\": true, \"parsed\": null, \"score\": null, \"reason\": \"unparsed: the answer names no option\"}\n"
                         "{\"unparsed\": false, \"parsed\": \"B\", \"score\": 1.0}\n");
    CHECK_TEXT(last.err, "vlmprof: mmmu: 2 rows, mean 0.500000 over 2, standard error 0.500000, 95 % interval 0.094531 to 0.905469 (Wilson); "
                         "0 without a score, 1 unparsed (0 in the mean), 0 empty\n");
    CHECK_INT(cli_with("score --metric em --clean none -", "{\"prediction\": \"Answer: a\", \"references\": [\"a\"]}", in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "\"cleaned\": \"Answer: a\"") && strstr(last.out, "\"score\": 0.0"));
    CHECK_INT(cli_with("score --metric anls --clean run", "{\"prediction\": \"Answer: a\", \"references\": [\"a\"]}", in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "\"score\": 1.0"));
    check_case("score: rows that say too little have a reason, bad lines too; the others go on");
    CHECK_INT(cli_with("score --metric em", "{\"prediction\": \"a\"}\nnonsense\n{\"references\": [\"a\"]}\n{\"prediction\": \"a\", \"references\": [[]]}\n"
                       "{\"prediction\": \"a\\u0000b\", \"references\": [\"a\"]}\n[1]\n{\"prediction\": \"a\", \"references\": [\"A\"]}\n",
                       in_folder("stdout"), 0), 3);
    CHECK(last.out && strstr(last.out, "no references") && strstr(last.out, "line 2: ") && strstr(last.out, "no prediction")
          && strstr(last.out, "must be texts") && strstr(last.out, "line 6: want one JSON object") && strstr(last.out, "\"score\": 1.0}\n"));
    CHECK(last.err && strstr(last.err, "2 lines are no JSON objects") && last.err_lines == 2);
    check_case("score and rescore: refusals");
    REFUSED("score", 2, "--metric");
    REFUSED("score --metric bogus %F/none", 2, "vqa_official");
    REFUSED("score --metric em --clean often", 2, "none of");
    REFUSED("score --metric em %F/none", 3, "none");
    REFUSED("score --metric em %F", 3, "folder");
    REFUSED("score --metric em", 3, "no line");
    REFUSED("rescore", 2, "RESULT.json");
    REFUSED("rescore %F/none", 3, "none");
    REFUSED("rescore %F", 3, "folder");
    write_text(in_folder("not.json"), "{\"per_sample_results\": 3}");
    REFUSED("rescore %F/not.json", 3, "per_sample_results");
    REFUSED("sweep --synthetic tiny --data x --output_dir %F/x --metric bogus", 2, "none of");
    write_text(in_folder("not.json"), "{\"per_sample_results\": []}");
    REFUSED("rescore %F/not.json --metric bogus", 2, "none of");
}

static int replace_once(const char *path, const char *from, const char *to) {
    size_t bytes = 0;
    char *text = check_read(path, &bytes), *at = text ? strstr(text, from) : NULL;
    if (at) {
        FILE *f = fopen(path, "wb");
        fwrite(text, 1, (size_t)(at - text), f);
        fwrite(to, 1, strlen(to), f);
        fwrite(at + strlen(from), 1, bytes - (size_t)(at - text) - strlen(from), f);
        fclose(f);
    }
    free(text);
    return at != NULL;
}

static void test_sweep_metrics(void) {
    static const char records[] = "{\"question\": \"One?\", \"options\": [\"a cat\", \"two dogs\"], \"answer\": 0}\n"
                                  "{\"question\": \"Two?\", \"options\": [\"a cat\", \"two dogs\"], \"answer\": \"B\"}\n"
                                  "{\"question\": \"Three?\", \"answers\": [\"x\"]}\n";
    static const char command[] = "sweep --synthetic tiny --data %F/choices.jsonl --output_dir %F/out --tier_list low --top_k_list 1 "
                                  "--num_active_blocks_list 2 --num_runs_per_sample 1 --max_new_tokens 4 ";
    const char *file = in_folder("out/science-qa-img_imgsizetier-low_crops0_topk1_blocks2.json");
    char path[512], line[800];
    document d;
    uint32_t row;
    int unparsed = 0;
    snprintf(path, sizeof path, "%s", file);
    write_text(in_folder("choices.jsonl"), records);
    check_case("sweep: the metric follows the data set; spread and odd answers are in the file");
    snprintf(line, sizeof line, "%s--dataset_name science_qa_img", command);
    CHECK_INT(cli(line), 0);
    if (!CHECK(load(&d, path))) return;
    CHECK(is_text(&d, 0, "accuracy_metric", "mc"));
    CHECK_INT(number(&d, 0, "accuracy_count"), 2);
    check_keys(&d, 0, "accuracy_standard_error accuracy_interval num_unparsed num_truncated num_empty");
    if (CHECK_INT(d.nodes[member(&d, 0, "accuracy_interval")].count, 2)) { /* Wilson's, of two answers */
        uint32_t interval = member(&d, 0, "accuracy_interval");
        double low = 0, high = 0, accuracy = number(&d, 0, "accuracy");
        CHECK_INT(vp_json_to_double(&d.json, vp_json_at(&d.json, interval, 0), &low), VP_OK);
        CHECK_INT(vp_json_to_double(&d.json, vp_json_at(&d.json, interval, 1), &high), VP_OK);
        CHECK(low <= accuracy && accuracy <= high);
        CHECK(fabs(high - low - (accuracy > 0 && accuracy < 1 ? 0.810937 : 0.657620)) < 1e-5);
    }
    CHECK_INT(number(&d, 0, "num_unparsed"), 0);
    row = vp_json_at(&d.json, member(&d, 0, "per_sample_results"), 0);
    check_keys(&d, row, "accuracy pred pred_cleaned unparsed truncated empty");
    CHECK(isfinite(number(&d, row, "accuracy")) && !is_null(&d, row, "pred_cleaned"));
    CHECK(d.nodes[member(&d, row, "ends_with_eos")].type != d.nodes[member(&d, row, "truncated")].type);
    row = vp_json_at(&d.json, member(&d, 0, "per_sample_results"), 2);
    CHECK(is_null(&d, row, "accuracy") && !is_null(&d, row, "accuracy_reason"));
    unload(&d);
    check_case("rescore: the same answers have the same scores, by another rule others, and a changed one is found");
    snprintf(line, sizeof line, "rescore %s", path);
    CHECK_INT(cli(line), 0);
    CHECK(last.err && strstr(last.err, "vlmprof: mc: 3 rows") && strstr(last.err, "1 without a score"));
    CHECK(last.out && strstr(last.out, "{\"sample_id\": 0, \"accuracy\": ") && strstr(last.out, "\"accuracy_stored\": "));
    snprintf(line, sizeof line, "rescore %s --metric mmmu", path);
    CHECK_INT(cli(line), 0);
    CHECK(last.err && strstr(last.err, "vlmprof: mmmu: 3 rows"));
    CHECK(replace_once(path, "\"accuracy_reason\": null, \"pred\"", "\"accuracy_reason\": null, \"accuracy\": 0.25, \"pred\""));
    snprintf(line, sizeof line, "rescore %s", path);
    CHECK_INT(cli(line), 1);
    CHECK(last.err && strstr(last.err, "1 of 3 stored accuracies differ"));
    snprintf(line, sizeof line, "rescore %s --metric em", path); /* another rule: nothing to compare with */
    CHECK_INT(cli(line), 0);
    snprintf(line, sizeof line, "rescore %s --metric cider", path);
    CHECK_INT(cli(line), 0);
    CHECK(last.out && strstr(last.out, "{\"sample_id\": 0, ") && strstr(last.out, "\"corpus\": {\"bleu\": ["));
    CHECK(last.err && strstr(last.err, "vlmprof: cider: 3 rows, corpus of "));
    remove_folder(in_folder("out"));
    check_case("sweep: --metric goes before the data set's name; unparsed answers count as 0, and are counted");
    snprintf(line, sizeof line, "%s--dataset_name science_qa_img --metric mmmu_score", command);
    CHECK_INT(cli(line), 0);
    if (!CHECK(load(&d, path))) return;
    CHECK(is_text(&d, 0, "accuracy_metric", "mmmu"));
    CHECK_INT(number(&d, 0, "accuracy_count"), 3);
    for (uint32_t i = 0; i < 3; i++) {
        row = vp_json_at(&d.json, member(&d, 0, "per_sample_results"), i);
        if (d.nodes[member(&d, row, "unparsed")].type != VP_JSON_TRUE) continue;
        CHECK_NEAR(number(&d, row, "accuracy"), 0, 0);
        unparsed++;
    }
    CHECK_INT(number(&d, 0, "num_unparsed"), unparsed);
    CHECK(unparsed > 0); /* noise names no option */
    unload(&d);
    snprintf(line, sizeof line, "%s--dataset_name science_qa_img", command);
    REFUSED(line, 2, "another plan");
    remove_folder(in_folder("out"));
    check_case("rescore: a file of the experiments, whose answers are cleaned already");
    write_text(in_folder("seed.json"), "{\"accuracy\": 0.5, \"per_sample_results\": [{\"sample_id\": 0, \"pred\": \"c\\nb\", \"accuracy\": 0.0, "
               "\"metadata\": {\"answers\": [\"b\", \"b\", \"b\"]}}, "
               "{\"sample_id\": 1, \"pred\": \"b\", \"accuracy\": 1.0, \"metadata\": {\"answers\": [\"b\", \"b\", \"b\"]}}]}");
    CHECK_INT(cli("rescore %F/seed.json"), 0);
    CHECK(last.out && strstr(last.out, "\"pred_cleaned\": \"c\\nb\""));
}

int main(void) {
    if (!folder_make("cli")) return 1;
    if (getenv("PROGRAM")) program = getenv("PROGRAM");
    test_info(); /* first: it says whether there is a GPU */
    test_usage();
    test_tile();
    test_tokenize();
    test_tokenize_jsonl();
    test_show_prompt();
    test_run();
    test_bad_input();
    test_vqa();
    test_vqa_refusals();
    test_folder_data();
    test_data_defaults();
    test_stratify();
    test_sweep();
    test_sweep_strategies();
    test_sweep_failures();
    test_score();
    test_sweep_metrics();
    test_resume();
    test_convert();
    test_selftest();
    test_no_device();
    test_emulated();
    remove_folder(folder);
    free(last.out);
    free(last.err);
    return check_done("test_cli");
}
