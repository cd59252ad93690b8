/* command_tokenize.c: converts text to token ids and back. The input is texts or ids, from operands or lines of stdin.
 * Each becomes a line of JSON on stdout. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "model/model.h"
#include "vlmprof_file.h"
#include "vlmprof_tokenizer.h"

#include <ctype.h>
#include <errno.h>

static const struct option_spec TOKENIZE_OPTIONS[] = {
    OPTION_GROUP("input"),
    OPTION_MODEL,
    OPTION_SYNTHETIC,
    {"tokenizer", TEXT, "FILE", NULL, 0, 0, NULL, "a tokenizer.json"},
    OPTION_GROUP("decoding"),
    {"decode", FLAG, NULL, NULL, 0, 0, NULL, "in reverse: TEXT or lines are token ids, and the output is text"},
    {"skip_special", FLAG, NULL, NULL, 0, 0, NULL, "with --decode: omit special tokens", .needs = "decode"},
    OPTION_GROUP("output"),
    OPTION_JSON_LINES,
    OPTIONS_OF_ALL,
};

/* Loads the tokenizer of a file, a checkpoint or a preset. Returns 0 or an exit code. */
static int load_any_tokenizer(const struct options *options, struct model *model) {
    const char *file = text_of(options, "tokenizer");
    char *json = NULL, *path;
    size_t bytes = 0;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    int code = 0;
    if ((file != NULL) + is_given(options, "model") + is_given(options, "synthetic") != 1)
        return complain(EXIT_USAGE, "tokenize needs --tokenizer FILE, --model DIR or --synthetic NAME");
    if (is_given(options, "synthetic")) {
        model->name = text_of(options, "synthetic");
        return model_load_preset(model);
    }
    if (!file && (code = model_check_folder("--model ", text_of(options, "model"))) != 0) return code;
    path = file ? copy_text(file, strlen(file)) : join_path(text_of(options, "model"), "tokenizer.json");
    if ((result = vp_file_read(path, JSON_FILE_BYTES_MAX, &json, &bytes, &error)) != VP_OK)
        code = complain_result(exit_code_of(result), path, result, &error);
    if (!code) code = model_load_tokenizer(json, bytes, path, &model->tokenizer);
    FREE_ALL(json, path);
    return code;
}

struct tokenize_job {
    const vp_tokenizer *tokenizer;
    int flags;                                   /* VP_DECODE_... */
    struct buffer ids, text;                     /* ids of the current line */
    struct text_buffer out;                      /* all output; printed only if every line is valid */
    int64_t line_count, text_bytes, token_count; /* totals of all lines, for --json */
};

static void add_tokens(struct tokenize_job *job, const char *text, size_t bytes, const int32_t *ids, size_t count) {
    vp_json_writer writer;
    job->line_count++;
    job->text_bytes += (int64_t)bytes;
    job->token_count += (int64_t)count;
    vp_json_writer_init_sink(&writer, text_sink, &job->out, 0);
    vp_json_begin_object(&writer);
    vp_json_key(&writer, "text");
    vp_json_string_bytes(&writer, text, bytes);
    put_ints(&writer, "ids", ids, (int32_t)count);
    vp_json_end_object(&writer);
    vp_json_finish(&writer);
    text_add(&job->out, "\n", 1);
}

static vp_result encode_text(struct tokenize_job *job, const char *text, size_t bytes, size_t *count) {
    reserve(&job->ids, bytes + 1, sizeof(int32_t));
    vp_result result = vp_tokenizer_encode(job->tokenizer, text, bytes, (int32_t *)job->ids.data,
                                           job->ids.bytes / sizeof(int32_t), count);
    if (result != VP_ERR_CAPACITY) return result;
    reserve(&job->ids, *count, sizeof(int32_t));
    return vp_tokenizer_encode(job->tokenizer, text, bytes, (int32_t *)job->ids.data, job->ids.bytes / sizeof(int32_t),
                               count);
}
static vp_result decode_ids(struct tokenize_job *job, size_t count, size_t *bytes) {
    const int32_t *ids = (const int32_t *)job->ids.data;
    reserve(&job->text, 1024, 1);
    vp_result result =
        vp_tokenizer_decode(job->tokenizer, ids, count, job->flags, (char *)job->text.data, job->text.bytes, bytes);
    if (result != VP_ERR_CAPACITY) return result;
    reserve(&job->text, *bytes + 1, 1);
    return vp_tokenizer_decode(job->tokenizer, ids, count, job->flags, (char *)job->text.data, job->text.bytes, bytes);
}

/* Each function converts one line: encode_line a text, decode_line ids. `line` is its number, for messages. They return
 * 0 or an exit code. */
static int encode_line(struct tokenize_job *job, const char *text, size_t bytes, int64_t line) {
    size_t count = 0;
    if (vp_utf8_valid_bytes(text, bytes) != bytes)
        return complain(EXIT_USAGE, "line %lld: not UTF-8 at byte %zu", (long long)line,
                        vp_utf8_valid_bytes(text, bytes));
    vp_result result = encode_text(job, text, bytes, &count);
    if (result != VP_OK)
        return complain(exit_code_of(result), "line %lld: %s", (long long)line, vp_result_text(result));
    add_tokens(job, text, bytes, (const int32_t *)job->ids.data, count);
    return 0;
}

/* Blanks or commas separate the ids, and brackets may surround them: [1, 2, 3] */
static int decode_line(struct tokenize_job *job, const char *text, size_t bytes, int64_t line) {
    const char *rest = text;
    size_t count = 0, needed = 0;
    int32_t *ids = reserve(&job->ids, bytes / 2 + 1, sizeof(int32_t));
    for (;;) {
        char *end;
        long long value;
        rest += strspn(rest, " \t,[]");
        if (!*rest) break;
        if (!isdigit((unsigned char)*rest))
            return complain(EXIT_USAGE, "line %lld: \"%.20s\" is not a token id", (long long)line, rest);
        errno = 0;
        value = strtoll(rest, &end, 10);
        if (errno || value > INT32_MAX)
            return complain(EXIT_USAGE, "line %lld: token id %.20s is too large", (long long)line, rest);
        ids[count++] = (int32_t)value;
        rest = end;
    }
    if ((size_t)(rest - text) != bytes)
        return complain(EXIT_USAGE, "line %lld: the line contains a NUL byte", (long long)line);
    vp_result result = decode_ids(job, count, &needed);
    if (result != VP_OK)
        return complain(exit_code_of(result), "line %lld: %s", (long long)line, vp_result_text(result));
    add_tokens(job, (const char *)job->text.data, needed, ids, count);
    return 0;
}

/* Adds the last line of --json. */
static void add_summary(struct tokenize_job *job) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, &job->out, 0);
    PUT(&writer, KEY_OBJECT(NULL), KEY_OBJECT("summary"), KEY("lines", job->line_count),
        KEY("text_bytes", job->text_bytes), KEY("tokens", job->token_count), END_OBJECT, END_OBJECT);
    vp_json_finish(&writer);
    text_add(&job->out, "\n", 1);
}

static int run_command(const struct options *options) {
    int (*take)(struct tokenize_job *, const char *, size_t, int64_t) =
        is_given(options, "decode") ? decode_line : encode_line;
    struct model model = {0};
    char *text = NULL;
    size_t capacity = 0, bytes;
    char limit[160];
    struct tokenize_job job = {.flags = is_given(options, "skip_special") ? VP_DECODE_SKIP_SPECIAL : 0};
    int code = load_any_tokenizer(options, &model);
    job.tokenizer = model.tokenizer;
    for (size_t i = 0; i < options->operand_count && !code; i++)
        code = take(&job, options->operands[i], strlen(options->operands[i]), (int64_t)i + 1);
    for (int64_t line = 1; !code && !options->operand_count; line++) {
        if ((bytes = line_read(stdin, &text, &capacity, LINE_BYTES_MOST)) == 0) break;
        if (bytes > LINE_BYTES_MOST)
            code = complain(EXIT_INPUT, "stdin: %s", line_limit_text(limit, sizeof limit, line, bytes));
        else {
            if (text[bytes - 1] == '\n') text[--bytes] = 0;
            code = take(&job, text, bytes, line);
        }
    }
    if (!code && is_given(options, "json")) add_summary(&job);
    if (!code && job.out.bytes) fwrite(job.out.data, 1, job.out.bytes, stdout);
    FREE_ALL(text, job.out.data, job.ids.data, job.text.data);
    model_free(&model);
    return code;
}

const struct command command_tokenize = {
    "tokenize", "(--tokenizer FILE | --model DIR | --synthetic NAME) [TEXT... | < LINES]",
    "convert text to token ids and back, one JSON object per line",
    "vlmprof tokenize --model checkpoint \"What is this?\"\n"
    "  vlmprof tokenize --model checkpoint --decode \"262 250 504\"",
    SIZE_MAX, COMMAND_OPTIONS(TOKENIZE_OPTIONS), NULL, run_command};
