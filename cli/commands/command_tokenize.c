/* command_tokenize.c: converts text to token ids and back. The input is texts, ids or JSON objects, from operands or
 * lines of stdin. Each becomes a line of JSON on stdout. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "model/model.h"
#include "model/prompt.h"
#include "vlmprof_file.h"
#include "vlmprof_prompt.h"
#include "vlmprof_tokenizer.h"

#include <ctype.h>
#include <errno.h>

enum { CAPTION_SEED = 42 }; /* of caption prompts for records without one, as in sweep */

static const struct option_spec TOKENIZE_OPTIONS[] = {
    OPTION_GROUP("input"),
    OPTION_MODEL,
    OPTION_SYNTHETIC,
    {"tokenizer", TEXT, "FILE", NULL, 0, 0, NULL, "a tokenizer.json"},
    {"jsonl", FLAG, NULL, NULL, 0, 0, NULL,
     "lines are JSON objects: add \"ids\" to \"text\", \"text\" to \"ids\", or \"prompt_text\" and \"ids\" to a data "
     "set's record"},
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
    int decode;                                  /* 1 with --decode */
    int flags;                                   /* VP_DECODE_... */
    struct buffer ids, text;                     /* ids of the current line */
    struct text_buffer out;                      /* all output; printed only if every line is valid */
    struct parsed record;                        /* the current line of --jsonl */
    int64_t line_count, text_bytes, token_count; /* totals of all lines, for --json */
};

static void count_line(struct tokenize_job *job, size_t bytes, size_t tokens) {
    job->line_count++;
    job->text_bytes += (int64_t)bytes;
    job->token_count += (int64_t)tokens;
}
static void add_tokens(struct tokenize_job *job, const char *text, size_t bytes, const int32_t *ids, size_t count) {
    vp_json_writer writer;
    count_line(job, bytes, count);
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
    vp_result result;
    reserve(&job->text, 1024, 1);
    result =
        vp_tokenizer_decode(job->tokenizer, ids, count, job->flags, (char *)job->text.data, job->text.bytes, bytes);
    if (result != VP_ERR_CAPACITY) return result;
    reserve(&job->text, *bytes + 1, 1);
    return vp_tokenizer_decode(job->tokenizer, ids, count, job->flags, (char *)job->text.data, job->text.bytes, bytes);
}

/* Each function converts one line: encode_line a text, decode_line ids, jsonl_line an object. `line` is its number, for
 * messages. They return 0 or an exit code. */
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

/* The kind of conversion that a line of --jsonl requests. A line with a question is a record of a data set, whatever
 * else it contains. */
typedef enum line_kind { LINE_NOTHING, LINE_TEXT, LINE_IDS, LINE_RECORD } line_kind;
static line_kind kind_of_line(const struct tokenize_job *job, const vp_json *json) {
    int ids = has_value(json, 0, "ids"), text = has_value(json, 0, "text");
    if (job->decode) return ids ? LINE_IDS : LINE_NOTHING;
    if (has_value(json, 0, "question") || has_value(json, 0, "questions")) return LINE_RECORD;
    if (text) return LINE_TEXT;
    if (has_value(json, 0, "dataset") || has_value(json, 0, "style")) return LINE_RECORD;
    return ids ? LINE_IDS : LINE_NOTHING;
}

/* Copies the members of a line, except those that are recomputed. Leaves the object open. */
static vp_result add_members(vp_json_writer *writer, const vp_json *json, const char *made, const char *also_made,
                             vp_error *error) {
    vp_json_begin_object(writer);
    for (uint32_t i = 1, member = 0; member < json->nodes[0].count; member++, i = json->nodes[i + 1].end) {
        char *key;
        if (vp_json_equals(json, i, made) || (also_made && vp_json_equals(json, i, also_made))) continue;
        if ((key = node_text(json, i)) == NULL)
            return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "", "a key contains \\u0000");
        vp_json_key(writer, key);
        json_node(writer, json, i + 1);
        free(key);
    }
    return VP_OK;
}

/* Write a line's object with the missing members appended, and leave it open. */
static vp_result jsonl_ids(struct tokenize_job *job, const vp_json *json, vp_json_writer *writer, vp_error *error) {
    uint32_t array = vp_json_get(json, 0, "ids");
    size_t count = 0, bytes = 0;
    vp_result result;
    if (!node_is(json, array, VP_JSON_ARRAY)) return bad_member(error, "ids", "an array of token ids");
    reserve(&job->ids, json->nodes[array].count, sizeof(int32_t));
    for (uint32_t i = array + 1; i < json->nodes[array].end; i = json->nodes[i].end) {
        int64_t id = -1;
        if (vp_json_to_int(json, i, &id) != VP_OK || id < 0 || id > INT32_MAX)
            return bad_member(error, "ids", "an array of token ids");
        ((int32_t *)job->ids.data)[count++] = (int32_t)id;
    }
    if ((result = decode_ids(job, count, &bytes)) != VP_OK) return result;
    if ((result = add_members(writer, json, "text", NULL, error)) != VP_OK) return result;
    vp_json_key(writer, "text");
    vp_json_string_bytes(writer, (const char *)job->text.data, bytes);
    count_line(job, bytes, count);
    return VP_OK;
}
static vp_result jsonl_text(struct tokenize_job *job, const vp_json *json, vp_json_writer *writer, vp_error *error) {
    uint32_t node = vp_json_get(json, 0, "text");
    size_t bytes = 0, count = 0;
    if (!node_is(json, node, VP_JSON_STRING)) return bad_member(error, "text", "a string");
    reserve(&job->text, (size_t)json->nodes[node].bytes + 1, 1); /* a text without its escapes is never longer */
    vp_result result = vp_json_text(json, node, (char *)job->text.data, job->text.bytes, &bytes);
    if (result == VP_OK) result = encode_text(job, (const char *)job->text.data, bytes, &count);
    if (result == VP_OK) result = add_members(writer, json, "ids", NULL, error);
    if (result == VP_OK) {
        put_ints(writer, "ids", (const int32_t *)job->ids.data, (int32_t)count);
        count_line(job, bytes, count);
    }
    return result;
}
static vp_result jsonl_record(struct tokenize_job *job, const vp_json *json, int64_t line, vp_json_writer *writer,
                              vp_error *error) {
    struct prompt_fields fields = {0};
    char *text = NULL;
    size_t count = 0;
    vp_result result;
    result = read_prompt_fields(json, &fields, error);
    if (result == VP_OK && fields.dataset && !fields.style && !vp_prompt_dataset_find(fields.dataset))
        result = vp_error_set(error, VP_ERR_NOT_FOUND, -1, "", "\"dataset\" is unknown; set \"style\"");
    if (result == VP_OK) result = build_prompt(&fields, NULL, NULL, CAPTION_SEED, line - 1, &text, NULL, error);
    if (result == VP_OK) result = encode_text(job, text, strlen(text), &count);
    if (result == VP_OK) result = add_members(writer, json, "prompt_text", "ids", error);
    if (result == VP_OK) {
        put_text(writer, "prompt_text", text);
        put_ints(writer, "ids", (const int32_t *)job->ids.data, (int32_t)count);
        count_line(job, strlen(text), count);
    }
    free(text);
    prompt_fields_free(&fields);
    return result;
}

static int jsonl_line(struct tokenize_job *job, const char *text, size_t bytes, int64_t line) {
    vp_error error = {VP_OK, -1, "", ""};
    const vp_json *json = &job->record.json;
    vp_json_writer writer;
    if (!text[strspn(text, " \t\r")] && strlen(text) == bytes) return 0;
    vp_result result = parse_json(&job->record, text, bytes, &error);
    if (result == VP_OK && !node_is(json, 0, VP_JSON_OBJECT))
        result = vp_error_set(&error, VP_ERR_FORMAT, -1, "", "expected one JSON object");
    if (result != VP_OK)
        return complain(EXIT_INPUT, "line %lld: %s (byte %lld)", (long long)line, error.text,
                        (long long)(error.offset < 0 ? 0 : error.offset));
    vp_json_writer_init_sink(&writer, text_sink, &job->out, 0);
    switch (kind_of_line(job, json)) {
    case LINE_TEXT: result = jsonl_text(job, json, &writer, &error); break;
    case LINE_IDS: result = jsonl_ids(job, json, &writer, &error); break;
    case LINE_RECORD: result = jsonl_record(job, json, line, &writer, &error); break;
    default:
        result =
            vp_error_set(&error, VP_ERR_FORMAT, -1, "",
                         job->decode ? "has no \"ids\"" : "has none of \"text\", \"ids\", \"question\", \"dataset\"");
    }
    if (result != VP_OK) {
        char reason[LINE_BYTES];
        error_line(reason, sizeof reason, result, &error);
        return complain(result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT, "line %lld: %s", (long long)line, reason);
    }
    vp_json_end_object(&writer);
    if ((result = vp_json_finish(&writer)) != VP_OK)
        return complain(EXIT_INPUT, "line %lld: %s", (long long)line, vp_result_text(result));
    text_add(&job->out, "\n", 1);
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
    int (*take)(struct tokenize_job *, const char *, size_t, int64_t) = is_given(options, "jsonl")    ? jsonl_line
                                                                        : is_given(options, "decode") ? decode_line
                                                                                                      : encode_line;
    struct model model = {0};
    char *text = NULL;
    size_t capacity = 0, bytes;
    char limit[160];
    struct tokenize_job job = {.decode = is_given(options, "decode")};
    job.flags = is_given(options, "skip_special") ? VP_DECODE_SKIP_SPECIAL : 0;
    if (is_given(options, "jsonl") && options->operand_count)
        return complain(EXIT_USAGE, "--jsonl reads lines from stdin: remove \"%s\"", options->operands[0]);
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
    FREE_ALL(text, job.out.data, job.ids.data, job.text.data, job.record.nodes);
    model_free(&model);
    return code;
}

const struct command command_tokenize = {
    "tokenize", "(--tokenizer FILE | --model DIR | --synthetic NAME) [TEXT... | < LINES]",
    "convert text to token ids and back, one JSON object per line",
    "vlmprof tokenize --model checkpoint \"What is this?\"\n"
    "  vlmprof tokenize --model checkpoint --jsonl < records.jsonl",
    SIZE_MAX, COMMAND_OPTIONS(TOKENIZE_OPTIONS), NULL, run_command};
