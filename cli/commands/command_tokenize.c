/* command_tokenize.c: text to token ids, and back. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "request/model.h"
#include "request/prompt.h"
#include "vlmprof.h"
#include "vlmprof_file.h"
#include "vlmprof_prompt.h"
#include "vlmprof_tokenizer.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static const option_spec TOKENIZE_OPTIONS[] = {
    OPTION_MODEL,
    OPTION_SYNTHETIC,
    {"tokenizer", TEXT, "FILE", NULL, 0, 0, NULL, "a tokenizer.json"},
    {"seed", COUNT, "S", "42", 0, UINT32_MAX, NULL, "of caption prompts whose record has none"},
    {"decode", FLAG, NULL, NULL, 0, 0, NULL, "the other way: TEXT or lines are token ids, text comes out"},
    {"jsonl", FLAG, NULL, NULL, 0, 0, NULL,
     "lines are objects: \"ids\" is added to \"text\", \"text\" to \"ids\", \"prompt_text\" and \"ids\" to a data set's record"},
    {"skip_special", FLAG, NULL, NULL, 0, 0, NULL, "with --decode: leave special tokens out"},
    {"clean_up", FLAG, NULL, NULL, 0, 0, NULL, "with --decode: no space before punctuation, as scoring does"},
    OPTION_HELP,
};

static int load_any_tokenizer(const options *o, model *m) {
    const char *file = text_of(o, "tokenizer");
    char *json = NULL, *path;
    size_t bytes = 0;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r;
    int code = 0;
    if ((file != NULL) + given(o, "model") + given(o, "synthetic") != 1)
        return complain(EXIT_USAGE, "tokenize needs one of --tokenizer FILE, --model DIR and --synthetic NAME");
    if (given(o, "synthetic")) {
        m->name = text_of(o, "synthetic");
        return model_load_preset(m);
    }
    path = file ? copy_text(file, strlen(file)) : join_path(text_of(o, "model"), "tokenizer.json");
    if ((r = vp_file_read(path, JSON_FILE_BYTES_MAX, &json, &bytes, &error)) != VP_OK) code = complain_result(exit_code_of(r), path, r, &error);
    if (!code) code = model_load_tokenizer(json, bytes, path, &m->tokenizer);
    free(json);
    free(path);
    return code;
}

/* output waits in `out` until every line is good: a failing command prints nothing on stdout */
typedef struct tokenize_job {
    const vp_tokenizer *tokenizer;
    int decode, flags;
    int64_t seed; /* of records that say none */
    buffer ids, text;
    text_buffer out;
    parsed record;
} tokenize_job;

static void add_tokens(tokenize_job *job, const char *text, size_t bytes, const int32_t *ids, size_t count) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, text_sink, &job->out, 0);
    vp_json_begin_object(&w);
    vp_json_key(&w, "text");
    vp_json_string_bytes(&w, text, bytes);
    put_ints(&w, "ids", ids, (int32_t)count);
    vp_json_end_object(&w);
    vp_json_finish(&w);
    text_add(&job->out, "\n", 1);
}

/* Ids of a text -> job->ids. */
static vp_result encode_text(tokenize_job *job, const char *text, size_t bytes, size_t *count) {
    vp_result r;
    reserve(&job->ids, bytes + 1, sizeof(int32_t));
    r = vp_tokenizer_encode(job->tokenizer, text, bytes, (int32_t *)job->ids.data, job->ids.bytes / sizeof(int32_t), count);
    if (r != VP_ERR_CAPACITY) return r;
    reserve(&job->ids, *count, sizeof(int32_t));
    return vp_tokenizer_encode(job->tokenizer, text, bytes, (int32_t *)job->ids.data, job->ids.bytes / sizeof(int32_t), count);
}
/* Text of job->ids -> job->text. */
static vp_result decode_ids(tokenize_job *job, size_t count, size_t *bytes) {
    const int32_t *ids = (const int32_t *)job->ids.data;
    vp_result r;
    reserve(&job->text, 1024, 1);
    r = vp_tokenizer_decode(job->tokenizer, ids, count, job->flags, (char *)job->text.data, job->text.bytes, bytes);
    if (r != VP_ERR_CAPACITY) return r;
    reserve(&job->text, *bytes + 1, 1);
    return vp_tokenizer_decode(job->tokenizer, ids, count, job->flags, (char *)job->text.data, job->text.bytes, bytes);
}

static int encode_line(tokenize_job *job, const char *text, size_t bytes, int64_t line) {
    size_t count = 0;
    vp_result r;
    if (vp_utf8_valid_bytes(text, bytes) != bytes)
        return complain(EXIT_USAGE, "line %lld: not UTF-8 at byte %zu", (long long)line, vp_utf8_valid_bytes(text, bytes));
    r = encode_text(job, text, bytes, &count);
    if (r != VP_OK) return complain(exit_code_of(r), "line %lld: %s", (long long)line, vp_result_text(r));
    add_tokens(job, text, bytes, (const int32_t *)job->ids.data, count);
    return 0;
}

/* ids separated by blanks or commas, brackets allowed: [1, 2, 3] */
static int decode_line(tokenize_job *job, const char *text, size_t bytes, int64_t line) {
    const char *p = text;
    size_t count = 0, needed = 0;
    vp_result r;
    int32_t *ids = reserve(&job->ids, bytes / 2 + 1, sizeof(int32_t));
    for (;;) {
        char *end;
        long long value;
        p += strspn(p, " \t,[]");
        if (!*p) break;
        if (!isdigit((unsigned char)*p)) return complain(EXIT_USAGE, "line %lld: \"%.20s\" is no token id", (long long)line, p);
        errno = 0;
        value = strtoll(p, &end, 10);
        if (errno || value > INT32_MAX) return complain(EXIT_USAGE, "line %lld: token id %.20s is too large", (long long)line, p);
        ids[count++] = (int32_t)value;
        p = end;
    }
    if ((size_t)(p - text) != bytes) return complain(EXIT_USAGE, "line %lld: a NUL byte stands in it", (long long)line);
    r = decode_ids(job, count, &needed);
    if (r != VP_OK) return complain(exit_code_of(r), "line %lld: %s", (long long)line, vp_result_text(r));
    add_tokens(job, (const char *)job->text.data, needed, ids, count);
    return 0;
}

/* what a line of --jsonl asks for: a question makes it a record, whatever else it holds */
typedef enum line_kind { LINE_NOTHING, LINE_TEXT, LINE_IDS, LINE_RECORD } line_kind;
static line_kind kind_of_line(const tokenize_job *job, const vp_json *j) {
    int ids = has_value(j, 0, "ids"), text = has_value(j, 0, "text");
    if (job->decode) return ids ? LINE_IDS : LINE_NOTHING;
    if (has_value(j, 0, "question") || has_value(j, 0, "questions")) return LINE_RECORD;
    if (text) return LINE_TEXT;
    if (has_value(j, 0, "dataset") || has_value(j, 0, "style")) return LINE_RECORD;
    return ids ? LINE_IDS : LINE_NOTHING;
}

/* The line's members but those that are made anew; the object stays open. */
static vp_result add_members(vp_json_writer *w, const vp_json *j, const char *made, const char *also_made, vp_error *error) {
    vp_json_begin_object(w);
    for (uint32_t i = 1, member = 0; member < j->nodes[0].count; member++, i = j->nodes[i + 1].end) {
        char *key;
        if (vp_json_equals(j, i, made) || (also_made && vp_json_equals(j, i, also_made))) continue;
        if ((key = node_text(j, i)) == NULL) return vp_fail(error, VP_ERR_UNSUPPORTED, -1, "", "a key holds \\u0000");
        vp_json_key(w, key);
        json_node(w, j, i + 1);
        free(key);
    }
    return VP_OK;
}

static vp_result jsonl_ids(tokenize_job *job, const vp_json *j, vp_json_writer *w, vp_error *error) {
    uint32_t array = vp_json_get(j, 0, "ids");
    size_t count = 0, bytes = 0;
    vp_result r;
    if (!node_is(j, array, VP_JSON_ARRAY)) return bad_member(error, "ids", "an array of token ids");
    reserve(&job->ids, j->nodes[array].count, sizeof(int32_t));
    for (uint32_t i = array + 1; i < j->nodes[array].end; i = j->nodes[i].end) {
        int64_t id = -1;
        if (vp_json_to_int(j, i, &id) != VP_OK || id < 0 || id > INT32_MAX) return bad_member(error, "ids", "an array of token ids");
        ((int32_t *)job->ids.data)[count++] = (int32_t)id;
    }
    if ((r = decode_ids(job, count, &bytes)) != VP_OK) return r;
    if ((r = add_members(w, j, "text", NULL, error)) != VP_OK) return r;
    vp_json_key(w, "text");
    vp_json_string_bytes(w, (const char *)job->text.data, bytes);
    return VP_OK;
}
static vp_result jsonl_text(tokenize_job *job, const vp_json *j, vp_json_writer *w, vp_error *error) {
    uint32_t node = vp_json_get(j, 0, "text");
    size_t bytes = 0, count = 0;
    vp_result r;
    if (!node_is(j, node, VP_JSON_STRING)) return bad_member(error, "text", "a string");
    reserve(&job->text, (size_t)j->nodes[node].bytes + 1, 1); /* unescaping never lengthens */
    r = vp_json_text(j, node, (char *)job->text.data, job->text.bytes, &bytes);
    if (r == VP_OK) r = encode_text(job, (const char *)job->text.data, bytes, &count);
    if (r == VP_OK) r = add_members(w, j, "ids", NULL, error);
    if (r == VP_OK) put_ints(w, "ids", (const int32_t *)job->ids.data, (int32_t)count);
    return r;
}
static vp_result jsonl_record(tokenize_job *job, const vp_json *j, int64_t line, vp_json_writer *w, vp_error *error) {
    prompt_fields f;
    char *text = NULL;
    size_t count = 0;
    vp_result r;
    memset(&f, 0, sizeof f);
    r = read_prompt_fields(j, &f, error);
    if (r == VP_OK && f.dataset && !f.style && !vp_prompt_dataset_find(f.dataset))
        r = vp_fail(error, VP_ERR_NOT_FOUND, -1, "", "\"dataset\" is none of the known ones; say its \"style\"");
    if (r == VP_OK) r = build_prompt(&f, NULL, NULL, job->seed, line - 1, &text, NULL, error);
    if (r == VP_OK) r = encode_text(job, text, strlen(text), &count);
    if (r == VP_OK) r = add_members(w, j, "prompt_text", "ids", error);
    if (r == VP_OK) {
        put_text(w, "prompt_text", text);
        put_ints(w, "ids", (const int32_t *)job->ids.data, (int32_t)count);
    }
    free(text);
    prompt_fields_free(&f);
    return r;
}

/* One object with what it lacks added at its end. */
static int jsonl_line(tokenize_job *job, const char *text, size_t bytes, int64_t line) {
    vp_error error = {VP_OK, -1, "", ""};
    const vp_json *j = &job->record.json;
    vp_json_writer w;
    vp_result r;
    if (!text[strspn(text, " \t\r")] && strlen(text) == bytes) return 0;
    r = parse_json(&job->record, text, bytes, &error);
    if (r == VP_OK && !node_is(j, 0, VP_JSON_OBJECT)) r = vp_fail(&error, VP_ERR_FORMAT, -1, "", "want one JSON object");
    if (r != VP_OK)
        return complain(EXIT_INPUT, "line %lld: %s (byte %lld)", (long long)line, error.text, (long long)(error.offset < 0 ? 0 : error.offset));
    vp_json_writer_init_sink(&w, text_sink, &job->out, 0);
    switch (kind_of_line(job, j)) {
    case LINE_TEXT: r = jsonl_text(job, j, &w, &error); break;
    case LINE_IDS: r = jsonl_ids(job, j, &w, &error); break;
    case LINE_RECORD: r = jsonl_record(job, j, line, &w, &error); break;
    default: r = vp_fail(&error, VP_ERR_FORMAT, -1, "", job->decode ? "has no \"ids\"" : "has none of \"text\", \"ids\", \"question\", \"dataset\"");
    }
    if (r != VP_OK) {
        char reason[LINE_BYTES];
        error_line(reason, sizeof reason, r, &error);
        return complain(r == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT, "line %lld: %s", (long long)line, reason);
    }
    vp_json_end_object(&w);
    if ((r = vp_json_finish(&w)) != VP_OK) return complain(EXIT_INPUT, "line %lld: %s", (long long)line, vp_result_text(r));
    text_add(&job->out, "\n", 1);
    return 0;
}

static int run_command(const options *o) {
    tokenize_job job;
    int (*take)(tokenize_job *, const char *, size_t, int64_t) = given(o, "jsonl") ? jsonl_line : given(o, "decode") ? decode_line : encode_line;
    model m;
    char *text = NULL;
    size_t capacity = 0;
    ssize_t bytes;
    int code;
    memset(&job, 0, sizeof job);
    memset(&m, 0, sizeof m);
    job.decode = given(o, "decode");
    job.flags = (given(o, "skip_special") ? VP_DECODE_SKIP_SPECIAL : 0) | (given(o, "clean_up") ? VP_DECODE_CLEAN_UP : 0);
    job.seed = number_of(o, "seed");
    if (job.flags && !job.decode) return complain(EXIT_USAGE, "--skip_special and --clean_up go with --decode");
    if (given(o, "jsonl") && o->operand_count) return complain(EXIT_USAGE, "--jsonl reads lines from stdin: leave \"%s\" out", o->operands[0]);
    code = load_any_tokenizer(o, &m);
    job.tokenizer = m.tokenizer;
    for (size_t i = 0; i < o->operand_count && !code; i++) code = take(&job, o->operands[i], strlen(o->operands[i]), (int64_t)i + 1);
    for (int64_t line = 1; !code && !o->operand_count && (bytes = getline(&text, &capacity, stdin)) > 0; line++) {
        if (text[bytes - 1] == '\n') text[--bytes] = 0;
        code = take(&job, text, (size_t)bytes, line);
    }
    if (!code && job.out.bytes) fwrite(job.out.data, 1, job.out.bytes, stdout);
    free(text);
    free(job.out.data);
    free(job.ids.data);
    free(job.text.data);
    free(job.record.nodes);
    model_free(&m);
    return code;
}

const command command_tokenize = {
    "tokenize", "(--tokenizer FILE | --model DIR | --synthetic NAME) [TEXT... | < LINES]",
    "text to token ids, one JSON object a line, and back",
    "vlmprof tokenize --model checkpoint \"What is this?\"\n"
    "  vlmprof tokenize --model checkpoint --jsonl < records.jsonl",
    SIZE_MAX, TOKENIZE_OPTIONS, sizeof TOKENIZE_OPTIONS / sizeof *TOKENIZE_OPTIONS, NULL, run_command};
