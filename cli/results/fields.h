/* fields.h: the keys of journals and result files, one row per key.
 * A row is the type, unit, words and limits of a value. The rows generate the struct of a line, the writer, the
 * checker, the reader, samples/result.schema.json and the lists in `help definitions`. The part of the program that
 * measures a value fills the struct. To add a key, add a row, and an assignment where its struct is filled. */
#ifndef VLMPROF_CLI_FIELDS_H
#define VLMPROF_CLI_FIELDS_H
#include "base/json.h"
#include "results/metrics.h"
#include "vlmprof_chat.h"
#include "vlmprof_noise.h"

/* The type of a value in the file; its type in memory. */
enum field_type {
    FIELD_INT,    /* integer; any signed integer type. Null if out of range */
    FIELD_NUMBER, /* number; double. Null if not finite */
    FIELD_TEXT,   /* string without a NUL; char *. Null if NULL */
    FIELD_BYTES,  /* any string; char *, with its length at `count` */
    FIELD_TRUTH,  /* true or false; int. Null if negative */
    FIELD_PAIR,   /* [integer, integer]; struct field_pair. Null if the first is below `least` */
    FIELD_RANGE,  /* [number, number]; struct field_range. Null if one is not finite */
    FIELD_INT_RANGE, /* like FIELD_RANGE, but integers in the file */
    FIELD_INTS,   /* list of integers; a pointer to items of `stride` bytes, with their number at `count` */
    FIELD_STAGES, /* object of [wall ns, device ns, launches, FLOPs, bytes] by stage; vp_stage_times */
    FIELD_OBJECT, /* object with the rows `of`; a struct, or if is_pointer a pointer to one. Null if NULL */
    FIELD_JSON,   /* any object; its text, char *. Null if NULL */
    FIELD_LIST,   /* any list; its text, char * */
    FIELD_OBJECTS /* list of objects with the rows `of`; a pointer to structs, with their number at `count` */
};
struct field_pair { int64_t first, second; };
struct field_range { double low, high; };
struct field_bytes { const char *text; size_t bytes; };
struct field_ints { const int32_t *items; int64_t count; };

struct fields;
struct field {
    const char *key;
    enum field_type type;
    size_t offset, bytes;       /* position and size of the value in its struct */
    const char *words;          /* description for the schema and `help definitions` */
    const char *unit;           /* NULL if none */
    const char *null;           /* when or why the value is null; NULL if it never is */
    int64_t least, most;        /* limits of an integer; of a number if most is above least */
    const char *choices;        /* the allowed texts, "a|b"; NULL: any text */
    size_t count, count_bytes;  /* position and size of the length */
    size_t stride, item, item_bytes; /* size of a list item; position and size of its integer */
    const struct fields *of;    /* rows of a FIELD_OBJECT or FIELD_OBJECTS */
    int column;                 /* COLUMN_... if reports read it as a number of a sample */
    int is_read;                /* 1 if reports read it from the head of a result file */
    int digits;                 /* decimals written; 0: all */
    int is_pointer;
    /* 1: a null is not written, and older files lack the key; 2: the keys of the table are all written, nulls included,
     * or all omitted */
    int is_optional;
    int is_elsewhere;           /* 1 if other code writes and reads the value, after the others */
};
struct fields { const struct field *rows; uint32_t count; size_t bytes; };

/* ---- functions on a table of rows */
/* fields_put writes the members into the open object, fields_put_object as a new object under `key`. */
void fields_put(vp_json_writer *writer, const struct fields *fields, const void *from);
void fields_put_object(vp_json_writer *writer, const char *key, const struct fields *fields, const void *from);
/* Returns 1 if the object's members fit the rows and it has `others` more members; others -1: any number of them. */
int fields_fit(const vp_json *json, uint32_t object, const struct fields *fields, int64_t others);
/* Reads an object into the struct, which is overwritten. Values that are missing or do not fit become null. */
void fields_read(const vp_json *json, uint32_t object, const struct fields *fields, void *to);
/* The same for the rows with is_read, of a file that another program may have written: integers may be below `least`,
 * and are -1 if missing; texts become fit for tables. Returns the first row whose number does not fit, or NULL. */
const struct field *fields_read_marked(const vp_json *json, uint32_t object, const struct fields *fields, void *to);
char *text_without_controls(char *text); /* control bytes become '?'; returns text, which may be NULL */
/* Frees what fields_read allocated, and zeroes the struct. */
void fields_free(const struct fields *fields, void *of);

/* ---- the three forms of a row. ROW(S, TYPE, key, words, members of struct field...): struct S has a member of
 * this name. AT(S, TYPE, "key", member, words, ...): the value is in this member of S. ELSE(TYPE, "key", words, ...):
 * other code writes the value. */
#define FIELD_ROW(S, type_, key_, ...) \
    {.key = #key_, .type = FIELD_##type_, .offset = offsetof(S, key_), .bytes = sizeof(((S *)0)->key_), \
     .words = __VA_ARGS__},
#define FIELD_AT(S, type_, key_, member, ...) \
    {.key = key_, .type = FIELD_##type_, .offset = offsetof(S, member), .bytes = sizeof(((S *)0)->member), \
     .words = __VA_ARGS__},
#define FIELD_ELSE(type_, key_, ...) {.key = key_, .type = FIELD_##type_, .is_elsewhere = 1, .words = __VA_ARGS__},
#define FIELD_COUNT_AT(S, member) .count = offsetof(S, member), .count_bytes = sizeof(((S *)0)->member)
#define FIELD_ITEMS(S, member) .stride = sizeof(*((S *)0)->member), .item_bytes = sizeof(*((S *)0)->member)
#define FIELD_NULL(why) , .null = why
#define FIELD_NEVER_NULL(why)
#define FIELD_TABLE(name, S, ...) \
    static const struct field name##_ROW[] = {__VA_ARGS__}; \
    const struct fields name = {name##_ROW, sizeof name##_ROW / sizeof *name##_ROW, sizeof(S)};
/* The members of the struct. */
#define FIELD_MEMBER(S, type_, key_, ...) FIELD_C_##type_ key_;
#define FIELD_C_INT int64_t
#define FIELD_C_NUMBER double
#define FIELD_C_TEXT const char *
#define FIELD_C_TRUTH int
#define FIELD_C_PAIR struct field_pair
#define FIELD_C_RANGE struct field_range
#define FIELD_C_JSON const char *
#define FIELD_C_LIST const char *
#define FIELD_C_OBJECTS void *
#define FIELD_C_BYTES struct field_bytes
#define FIELD_C_INTS struct field_ints
#define FIELD_SKIP(...)

/* ---- lines of a journal */
#define LINE_NS_MAX INT64_C(500000000000000) /* longest run: six days; sums over a point's runs do not overflow */
#define LINE_WORK_MAX (INT64_C(1) << 58)     /* most launches, FLOPs or bytes of a stage */
#define LINE_COUNT_MAX (INT64_C(1) << 40)
#define FIELD_COUNT_MAX (INT64_C(1) << 60)
#define RESULT_SCHEMA "vlmprof-sweep-2"
enum { LINE_RUNS_MAX = 10000, LINE_SIDE_MAX = 32767, STAGE_NUMBERS = 5 }; /* runs per point, rows per tiling */

#define HEAD_ROWS(ROW, ELSE, S) \
    ROW(S, TEXT, schema, "name and version of this layout") \
    ROW(S, TEXT, plan, "fingerprint of everything that determines the measured points") \
    ROW(S, INT, rank, "rank of the process", .most = INT32_MAX) \
    ROW(S, INT, world_size, "number of processes that share the work", .least = 1, .most = INT32_MAX) \
    ROW(S, TEXT, model, "name of the model") \
    ROW(S, TRUTH, synthetic, "weights are seeded random numbers") \
    ROW(S, TEXT, timing, "off: only T_total is measured") \
    ROW(S, TRUTH, ignore_eos, "answers continue after the end token") \
    ROW(S, INT, num_runs_per_sample, "timed runs of each sample", .least = 1, .most = INT32_MAX) \
    ROW(S, INT, num_total_blocks, "decoder blocks of the model; 0: a server", .most = INT32_MAX) \
    ROW(S, INT, bare_every, "every Nth point also runs without stage times; 0: none", .most = INT32_MAX) \
    ROW(S, TEXT, architecture, "kind of model", .is_optional = 1) \
    ELSE(OBJECT, "model_shape", "dimensions of the model, from its checkpoint", .is_optional = 1, .of = &MODEL_SHAPE) \
    ELSE(OBJECT, "server", "settings of a server sweep, the same for all servers", .is_optional = 1, \
         .of = &SERVER) \
    ELSE(JSON, "options", "every option of the command") \
    ELSE(LIST, "data", "the data sets") \
    ELSE(LIST, "configs", "the configurations of the grid")
/* From the checkpoint's config. Heads written by older versions lack it. */
#define MODEL_SHAPE_ROWS(ROW, S) \
    ROW(S, INT, num_experts, "experts per decoder block; 0: a dense MLP", .most = INT32_MAX) \
    ROW(S, INT, top_k, "experts per token in training; 0: no experts", .most = INT32_MAX) \
    ROW(S, INT, d_model, "width of the decoder", .least = 1, .most = INT32_MAX) \
    ROW(S, INT, n_heads, "attention heads per decoder block", .least = 1, .most = INT32_MAX) \
    ROW(S, INT, n_layers, "decoder blocks", .least = 1, .most = INT32_MAX) \
    ROW(S, INT, expert_dim, "hidden width of an expert; 0: no experts", .most = INT32_MAX) \
    ROW(S, INT, vocab_size, "tokens in the vocabulary", .least = 1, .most = INT32_MAX) \
    ROW(S, INT, vit_width, "width of the vision encoder", .most = INT32_MAX) \
    ROW(S, INT, vit_layers, "blocks of the vision encoder", .most = INT32_MAX)
#define SERVER_ROWS(ELSE) \
    ELSE(LIST, "endpoints", "base URLs") \
    ELSE(LIST, "endpoint_models", "model names used by the servers") \
    ELSE(TEXT, "endpoint_api", "API used for the requests") \
    ELSE(JSON, "request_knobs", "fields of the request bodies that were varied") \
    ELSE(TEXT, "family", "model family whose rule counts image tokens", .null = "no --family") \
    ELSE(JSON, "family_keys", "keys of the rule that were set on the command line")
#define DATA_ROWS(ROW, S) \
    ROW(S, TEXT, task, "--dataset_name, or the data file's stem with _ turned into -") \
    ROW(S, TEXT, path, "path of the data set as given") \
    ROW(S, TEXT, metric, "scoring rule") \
    ROW(S, INT, max_new_tokens, "maximum tokens per answer", .most = INT32_MAX) \
    ROW(S, INT, num_samples, "samples", .most = LINE_COUNT_MAX) \
    ROW(S, TEXT, content_hash, "hash of the sampled records, prompts and image sizes")
/* without its knobs */
#define CONFIGURATION_ROWS(ROW, S) \
    ROW(S, TEXT, file_name, "name of its result file") \
    ROW(S, INT, set, "0-based index of its data set", .most = INT32_MAX)
#define SESSION_ROWS(ELSE) \
    ELSE(TEXT, "version", "version of vlmprof") \
    ELSE(TEXT, "build", "compiler and CUDA toolkit") \
    ELSE(TEXT, "host", "name of the machine") \
    ELSE(TEXT, "date", "start of the session, UTC, ISO 8601") \
    ELSE(LIST, "argv", "the command line")
#define ENGINE_SESSION_ROWS(ELSE) \
    SESSION_ROWS(ELSE) \
    ELSE(TEXT, "device", "device that ran the model") \
    ELSE(INT, "seed", "seed for weights, samples and caption prompts", .least = INT64_MIN, .most = INT64_MAX) \
    ELSE(NUMBER, "stamp_cost_ns", "cost of a time stamp") \
    ELSE(JSON, "cold", "the session's first request, excluded from all statistics")
/* A client's session: the servers' descriptions of themselves, and the first request to each. */
#define SERVED_SESSION_ROWS(ELSE) \
    SESSION_ROWS(ELSE) \
    ELSE(TEXT, "client", "servers only: library that sent the requests") \
    ELSE(LIST, "servers", "servers only: each server's description of itself")
#define SAMPLE_ROWS(ROW, ELSE, S) \
    ROW(S, INT, sample, "0-based line number in the data set", .most = INT64_MAX) \
    ROW(S, INT, set, "0-based index of its data set", .most = INT32_MAX) \
    ROW(S, TEXT, prompt, "text that is tokenized") \
    ROW(S, INT, input_text_tokens, "text tokens in the prompt", .most = INT32_MAX, .null = "not known for a server") \
    ELSE(JSON, "metadata", "the fields of the data set's record")

/* A line of a point. */
#define POINT_ROWS(ROW, S) \
    ROW(S, TEXT, config, "file name of the configuration") \
    ROW(S, INT, sample_id, "0-based line number in the data set", .most = INT64_MAX) \
    ROW(S, INT, prev, "byte offset of the point's previous line; -1: none", .least = -1, .most = INT64_MAX)
#define SESSION_OF_ROWS(ROW, S) \
    ROW(S, INT, session, "byte offset of the session's line; -1: none", .least = -1, .most = INT64_MAX)
#define ANY_RUN_ROWS(ROW, AT, S) \
    POINT_ROWS(ROW, S) \
    ROW(S, INT, run, "index of the run in its point, from 0", .most = LINE_RUNS_MAX - 1) \
    SESSION_OF_ROWS(ROW, S) \
    ROW(S, INT, unix_s, "end of the run, Unix time", .most = LINE_COUNT_MAX) \
    AT(S, INT, "total_ns", pass.total_ns, "T_total", .least = 1, .most = LINE_NS_MAX) \
    AT(S, BYTES, "answer", pass.answer, "text of the answer", FIELD_COUNT_AT(S, pass.answer_bytes))
#define KEPT_FIELD(id, key, unit_, meaning, value, S, AT) \
    AT(S, NUMBER, key, pass.kept[KEPT_##id], meaning, .unit = unit_, .is_optional = 1)
#define RUN_ROWS(ROW, AT, S) \
    ANY_RUN_ROWS(ROW, AT, S) \
    ROW(S, INT, stamps, "number of time stamps or events", .most = LINE_COUNT_MAX) \
    AT(S, STAGES, "stages", pass.reply.times, "[wall ns, device ns, launches, FLOPs, bytes] of each stage that ran") \
    AT(S, INTS, "step_ns", pass.reply.step_ns, "time of each decode step", FIELD_ITEMS(S, pass.reply.step_ns), \
       FIELD_COUNT_AT(S, step_count), .most = LINE_NS_MAX) \
    AT(S, INTS, "tokens", pass.reply.tokens, "ids of the new tokens", FIELD_ITEMS(S, pass.reply.tokens), \
       FIELD_COUNT_AT(S, pass.reply.token_count), .most = INT32_MAX) \
    AT(S, TRUTH, "ended_by_eos", pass.reply.ended_by_eos, "the answer ended with an end token") \
    ROW(S, TRUTH, throttled, "the device was throttled") \
    ROW(S, JSON, telemetry, "clocks, power, temperature", .null = "not read") \
    KEPT_ROWS(KEPT_FIELD, S, AT) \
    AT(S, NUMBER, "energy_resolution_j", pass.energy_resolution_j, "energy used per step of the counter", \
       .unit = "J", .is_optional = 1)
#define SERVED_RUN_ROWS(ROW, AT, S) \
    ANY_RUN_ROWS(ROW, AT, S) \
    AT(S, OBJECT, "served", pass.served, "result of a request to a server", .of = &SERVED, .is_pointer = 1)
/* times since the first byte sent, in older journals since the start of the request; -1: the event did not happen */
#define SERVED_NS(S, AT, key, words) AT(S, INT, #key, key, words, .least = -1, .most = LINE_NS_MAX)
#define SERVED_PIECES(S, AT, key, member, words, max) \
    AT(S, INTS, key, pieces, words, .stride = sizeof(vp_chat_piece), .item = offsetof(vp_chat_piece, member), \
       .item_bytes = sizeof(int64_t), FIELD_COUNT_AT(S, piece_count), .most = max)
#define SERVED_PASS_ROWS(AT, S) \
    AT(S, INT, "delay_ns", delay_ns, "time until the first byte was sent", .most = LINE_NS_MAX, .is_optional = 1, \
       .null = "an older journal") \
    SERVED_NS(S, AT, sent_ns, "0; in older journals the time until the first byte was sent") \
    SERVED_NS(S, AT, headers_ns, "response headers received") \
    SERVED_NS(S, AT, end_ns, "end of the body") \
    SERVED_NS(S, AT, first_ns, "first piece of the answer") \
    SERVED_NS(S, AT, first_output_ns, "first piece that is not reasoning") \
    SERVED_PIECES(S, AT, "piece_ns", at_ns, "time of each piece of the answer", LINE_NS_MAX) \
    SERVED_PIECES(S, AT, "piece_bytes", text_bytes, "size of each piece in bytes", INT64_MAX) \
    AT(S, OBJECT, "usage", usage, "token counts reported by the server", .of = &USAGE) \
    AT(S, TEXT, "model", model, "model name reported by the server", .null = "not reported") \
    AT(S, TEXT, "finish_reason", finish_reason, "why the answer ended: stop, length, ...", .null = "not reported") \
    AT(S, TEXT, "reasoning", reasoning, "reasoning text before the answer", .null = "none") \
    AT(S, JSON, "timings", timings, "the server's own times, under its names", .null = "none reported") \
    AT(S, TRUTH, "is_streamed", is_streamed, "false: the answer came in a single response body") \
    AT(S, TRUTH, "is_new_connection", is_new_connection, "the times include the time to connect") \
    AT(S, INT, "http_status", http_status, "status of the response", .most = 999) \
    AT(S, INT, "attempts", attempts, "number of attempts; above 1: it was sent again", .least = 1, .most = INT32_MAX)
#define USAGE_TOKENS(S, AT, key, words) \
    AT(S, INT, #key, key, words, .most = INT32_MAX, .null = "not reported by the server")
#define USAGE_ROWS(AT, S) \
    USAGE_TOKENS(S, AT, prompt_tokens, "prompt tokens, image and text together") \
    USAGE_TOKENS(S, AT, completion_tokens, "tokens in the answer") \
    USAGE_TOKENS(S, AT, image_tokens, "image tokens in the prompt") \
    USAGE_TOKENS(S, AT, cached_tokens, "prompt tokens read from a cache") \
    USAGE_TOKENS(S, AT, reasoning_tokens, "reasoning tokens in the answer")
/* A run without stage times and one with them. */
struct bare_pair { int64_t bare_ns, staged_ns; int bare_first; };
#define BARE_PAIR_ROWS(AT, S) \
    AT(S, INT, "bare_total_ns", bare_ns, "T_total without stage times", .least = 1, .most = LINE_NS_MAX) \
    AT(S, INT, "staged_total_ns", staged_ns, "T_total with stage times", .least = 1, .most = LINE_NS_MAX) \
    AT(S, TRUTH, "bare_first", bare_first, "the run without stage times was first")
#define BARE_ROWS(ROW, AT, S) \
    POINT_ROWS(ROW, S) \
    AT(S, OBJECT, "bare", pair, "the two runs, in random order", .of = &BARE_PAIR) \
    SESSION_OF_ROWS(ROW, S)
/* A token count is 0 if its request was not made. */
#define TWINS_REASON(ROW, S) \
    ROW(S, TEXT, reason, "why there are no pairs, or fewer than requested", .null = "all pairs were measured")
#define TWINS_PAIRS(ROW, S) \
    ROW(S, OBJECTS, pairs, "the pairs, in the order in which they ran", .of = &TWIN_PAIR, FIELD_COUNT_AT(S, count))
#define TWINS_OBJECT_ROWS(ROW, S) \
    ROW(S, TEXT, method, "exact: older files, which dropped pairs with unequal numbers of tokens", \
        .choices = "exact|adjusted") \
    TWINS_REASON(ROW, S) \
    ROW(S, INT, prompt_tokens, "prompt tokens in the image request", .most = INT32_MAX) \
    ROW(S, INT, image_tokens, "prompt_tokens minus the tokens of the question without the image", \
        .least = -INT32_MAX, .most = INT32_MAX) \
    TWINS_PAIRS(ROW, S)
#define TWINS_ROWS(ROW, AT, S) \
    POINT_ROWS(ROW, S) \
    AT(S, OBJECT, "twins", twins, "pairs of requests: with the image, and with a text of equal prompt length", \
       .of = &TWINS_OBJECT) \
    SESSION_OF_ROWS(ROW, S)
/* A request with an image and one with a text of equal prompt length: server/checks/twins.h. NaN and -1 mean null. */
struct twin_pair {
    double image_ms, text_ms, floor_ms, upload_ms, image_prompt_ms, text_prompt_ms, image_chunk_ms, text_chunk_ms;
    int64_t image_tokens, text_tokens, floor_tokens, image_cached, text_cached;
    int image_first;
};
#define TWIN_MS(S, AT, key, words, why) AT(S, NUMBER, #key, key, words, .unit = "ms", .most = FIELD_MS_MAX, .null = why)
#define TWIN_CHUNK(S, AT, key, words) \
    AT(S, NUMBER, #key, key, words, .unit = "ms", .most = FIELD_MS_MAX, .null = "not known", .is_optional = 1)
#define TWIN_PAIR_ROWS(AT, S) \
    TWIN_MS(S, AT, image_ms, "TTFT with the image", "no text was received") \
    TWIN_MS(S, AT, text_ms, "TTFT with the text", "no text was received") \
    TWIN_MS(S, AT, floor_ms, "TTFT of a text-only request of a few tokens", "no text was received") \
    TWIN_MS(S, AT, upload_ms, "time from the first to the last byte of the image request", "not known") \
    TWIN_MS(S, AT, image_prompt_ms, "prompt time with the image by the server's clock", "not reported") \
    TWIN_MS(S, AT, text_prompt_ms, "prompt time with the text by the server's clock", "not reported") \
    TWIN_CHUNK(S, AT, image_chunk_ms, "time to the first chunk of the stream with the image") \
    TWIN_CHUNK(S, AT, text_chunk_ms, "time to the first chunk of the stream with the text") \
    AT(S, INT, "image_tokens", image_tokens, "prompt tokens with the image", .most = INT32_MAX) \
    AT(S, INT, "text_tokens", text_tokens, "prompt tokens with the text", .most = INT32_MAX) \
    AT(S, INT, "floor_tokens", floor_tokens, "prompt tokens with the text of a few tokens", .most = INT32_MAX) \
    AT(S, INT, "image_cached", image_cached, "image_tokens read from a cache", .most = INT32_MAX, \
       .null = "not reported by the server") \
    AT(S, INT, "text_cached", text_cached, "text_tokens read from a cache", .most = INT32_MAX, \
       .null = "not reported by the server") \
    AT(S, TRUTH, "image_first", image_first, "false: the text-only request was sent first")
/* A sample's next-token distributions along the baseline's answer: measure/fidelity.h. */
struct divergence { double nats, at_most; };
#define TIE_NATS 0.1 /* a smaller preference is a tie, which rounding can decide: e^0.1 to 1 */
struct fidelity {
    char *baseline, *reason;
    int32_t positions, top1_count, answers_equal, first_difference; /* -1: not known, or none */
    double margin, baseline_margin;
    struct divergence *divergences; int32_t divergence_count;
};
#define DIVERGENCE_ROWS(AT, S) \
    AT(S, NUMBER, "kl_divergence", nats, "KL divergence at a position; on a server: the lower bound", .unit = "nats", \
       .null = "infinite: the most likely tokens of one distribution have probability 0 in the other") \
    AT(S, NUMBER, "at_most", at_most, "server only: the upper bound", .unit = "nats", .is_optional = 1)
#define FIDELITY_OBJECT_ROWS(AT, S) \
    AT(S, TEXT, "baseline", baseline, "configuration or folder whose answer is followed") \
    AT(S, TEXT, "reason", reason, "why the comparison is missing or partial", .null = "everything was compared") \
    AT(S, INT, "positions", positions, "tokens of the baseline's answer that were compared", .most = INT32_MAX) \
    AT(S, INT, "top1_count", top1_count, "positions where both have the same most likely token", .most = INT32_MAX) \
    AT(S, TRUTH, "answers_equal", answers_equal, "the greedy answers are equal", .null = "not compared") \
    AT(S, INT, "first_difference", first_difference, "0-based index of the first token that differs", \
       .most = INT32_MAX, .null = "none, or not known") \
    AT(S, NUMBER, "margin", margin, "at this token: log probability of the answer's token minus the baseline's", \
       .unit = "nats", .null = "none, or not known") \
    AT(S, NUMBER, "baseline_margin", baseline_margin, \
       "at this token: the baseline's log probability of its own token minus that of the other", \
       .unit = "nats", .null = "none, or not known") \
    AT(S, OBJECTS, "divergences", divergences, "divergence at each position whose distributions are known", \
       .of = &DIVERGENCE, FIELD_COUNT_AT(S, divergence_count))
#define FIDELITY_LINE_ROWS(ROW, AT, S) \
    POINT_ROWS(ROW, S) \
    AT(S, OBJECT, "fidelity", fidelity, "comparison with the baseline", .of = &FIDELITY_OBJECT) \
    SESSION_OF_ROWS(ROW, S)
#define FIELD_MS_MAX INT64_C(1000000000000) /* thirty years: sums and squares of such values are still finite */
#define DONE_ROWS(ROW, ELSE, S) \
    POINT_ROWS(ROW, S) \
    ROW(S, INT, done, "number of runs", .least = 1, .most = LINE_RUNS_MAX) \
    ROW(S, TEXT, stop, "why the runs ended", .choices = "runs|interval|box|max") \
    ROW(S, INT, retries, "requests repeated after a device error", .most = INT32_MAX) \
    ELSE(JSON, "sizes", "values derived from the layout of the image")
#define FAILED_ROWS(ROW, ELSE, S) \
    POINT_ROWS(ROW, S) \
    ROW(S, TEXT, failed, "why it failed") \
    ROW(S, INT, attempts, "number of attempts", .most = INT32_MAX) \
    ROW(S, INT, retries, "requests repeated after a device error", .most = INT32_MAX) \
    ELSE(JSON, "sizes", "values derived from the layout of the image")
/* One number per image; not written for a single image. */
#define SEVERAL_ROW(ROW, S, key, words, ...) \
    ROW(S, INTS, key, words, FIELD_COUNT_AT(S, key.count), .stride = sizeof(int32_t), \
        .item_bytes = sizeof(int32_t), .most = INT32_MAX, .is_optional = 1, __VA_ARGS__)
/* NULLS: nulls that occur only in results of servers. */
#define SIZES_ROWS(ROW, S, NULLS) \
    ROW(S, TEXT, tier, "resolution tier", .choices = "low|medium|high", .null = "chosen by vision tokens") \
    ROW(S, INT, target_vision_tokens, "requested vision tokens", .most = INT32_MAX, .null = "no image") \
    ROW(S, INT, target_crops, "requested crops", .most = INT32_MAX, .null = "no image") \
    ROW(S, INT, top_k, \
        "experts per token; 0: a model without experts", .most = INT32_MAX NULLS("not known for a server")) \
    ROW(S, INT, num_active_blocks, "decoder blocks that run", .most = INT32_MAX NULLS("not known for a server")) \
    ROW(S, INT, theoretical_num_crops, "crops without the global view", .most = INT32_MAX, .null = "no image") \
    ROW(S, PAIR, theoretical_tiling, "[rows, columns] of crops", .most = LINE_SIDE_MAX, \
        .null = "no image, or several") \
    ROW(S, PAIR, theoretical_image_size, "size of the tiling, [height, width]", .unit = "px", \
        .most = INT32_MAX, .null = "no image, or several") \
    ROW(S, INT, theoretical_vision_tokens, \
        "vision tokens if crops did not overlap", .most = INT32_MAX, .null = "no image") \
    ROW(S, INT, actual_num_crops, "crops without the global view", \
        .column = COLUMN_VIEWS, .most = INT32_MAX, .null = "no image") \
    ROW(S, PAIR, actual_tiling, "[rows, columns] of crops", .most = LINE_SIDE_MAX, .null = "no image, or several") \
    ROW(S, PAIR, actual_image_size, \
        "size of the tiling, [height, width]; on a server: size of the image that was sent", .unit = "px", \
        .most = INT32_MAX, .null = "no image, or several") \
    ROW(S, INT, actual_vision_tokens, \
        "vision tokens in the sequence; on a server: by the server's count", .column = COLUMN_VISION_TOKENS, \
        .most = INT32_MAX, .null = "no image") \
    ROW(S, INT, num_images, "number of images in the request, if there are several", \
        .column = COLUMN_IMAGES, .least = 2, .most = INT32_MAX, .is_optional = 1) \
    ROW(S, INT, num_views, "several images: total number of views", \
        .column = COLUMN_VIEWS_OF_IMAGES, .least = 1, .most = INT32_MAX, .is_optional = 1) \
    SEVERAL_ROW(ROW, S, vision_tokens_of_images, "several images: vision tokens of each", .unit = NULL) \
    ROW(S, INT, input_text_tokens, "text tokens in the prompt: sequence without image tokens and BOS", \
        .column = COLUMN_TEXT_TOKENS, .most = INT32_MAX NULLS("not known for a server")) \
    ROW(S, INT, actual_text_tokens, "input_text_tokens under the reference implementation's name", \
        .column = COLUMN_TEXT_TOKENS, .most = INT32_MAX NULLS("not known for a server")) \
    ROW(S, INT, total_sequence_length, \
        "prompt positions", .column = COLUMN_PROMPT, .most = INT32_MAX, .null = "not known") \
    ROW(S, TEXT, activations_used, \
        "activation type for int8 and int4 weights in prefill and vision; not written without such weights", \
        .choices = "bf16|int16|int8", .is_optional = 1) \
    ROW(S, INT, kept_vision_tokens, \
        "with --prune_list: image tokens kept after the last cut", .column = COLUMN_KEPT_TOKENS, .least = 1, \
        .most = INT32_MAX, .is_optional = 1) \
    ROW(S, NUMBER, mean_sequence_length, \
        "with --prune_list: prefill rows, averaged over the decoder blocks", .column = COLUMN_SEQUENCE, \
        .most = INT32_MAX, \
        .is_optional = 1) \
    ROW(S, INT, kv_cache_bytes, \
        "with --prune_list: KV cache size of the request at the maximum answer length", .unit = "bytes", \
        .column = COLUMN_CACHE_BYTES, .least = 1, .most = LINE_WORK_MAX, .is_optional = 1) \
    ROW(S, INT, kv_cache_bytes_unpruned, \
        "with --prune_list: KV cache size at the maximum answer length with all image tokens", .unit = "bytes", \
        .column = COLUMN_FULL_CACHE_BYTES, .least = 1, .most = LINE_WORK_MAX, .is_optional = 1) \
    CHOICE_ROWS(ROW, S)
/* What a policy chose for a sample. */
#define CHOICE_ROWS(ROW, S) \
    ROW(S, TEXT, chosen_config, "with --choices: file name of the grid configuration that ran", \
        .is_optional = 1) \
    ROW(S, NUMBER, overhead_ms, \
        "with --choices: the policy's overhead_ms; T_total and TTFT include it; the stages and unaccounted do not", \
        .unit = "ms", .most = FIELD_MS_MAX, .is_optional = 1)
#define SENT_ROWS(ROW, AT, S) \
    AT(S, OBJECT, "sent_image", sent_image, "server only: the image as sent", .of = &SENT_IMAGE, \
       .is_pointer = 1, .null = "text only, several images, or nothing could be sent") \
    ROW(S, INT, num_sent_images, \
        "server only: number of images in the request, if there are several", .column = COLUMN_IMAGES, .least = 2, \
        .most = INT32_MAX, .is_optional = 1) \
    ROW(S, INT, sent_bytes, "server only, several images: size of all files", \
        .unit = "bytes", .column = COLUMN_IMAGE_BYTES, .least = 1, .most = INT64_MAX, .is_optional = 1) \
    SEVERAL_ROW(ROW, S, sent_sizes_of_images, \
                "server only, several images: width and height of each as sent", .unit = "px") \
    SEVERAL_ROW(ROW, S, sent_bytes_of_images, "server only, several images: size of each file", .unit = "bytes") \
    SEVERAL_ROW(ROW, S, tokens_by_rule_of_images, \
                "server only, several images: tokens of each by --family's rule", .unit = NULL) \
    ROW(S, INT, image_tokens_by_rule, "server only: tokens of the sent image by --family's rule", \
        .most = INT32_MAX, .null = "no --family")
#define SERVED_SIZES_ROWS(ROW, AT, S) \
    ROW(S, TEXT, tier, "resolution tier", .null = "none") \
    ROW(S, INT, target_vision_tokens, "requested vision tokens", .most = INT32_MAX, .null = "none") \
    SENT_ROWS(ROW, AT, S) \
    CHOICE_ROWS(ROW, S)
#define SENT_IMAGE_ROWS(ROW, S) \
    ROW(S, INT, width_px, "width of the upright image", .unit = "px", .least = 1, .most = INT32_MAX) \
    ROW(S, INT, height_px, "height of the upright image", .unit = "px", .least = 1, .most = INT32_MAX) \
    ROW(S, INT, bytes, "size of the file before base64", .least = 1, .most = INT64_MAX) \
    ROW(S, TEXT, media_type, "image/png, ...") \
    ROW(S, TRUTH, is_resized, "false: the data set's own file, with a few bits changed unless --same_image was given")
/* A block of requests under load. */
#define LOAD_ROWS(ROW, S) \
    ROW(S, INT, round, "index of the round, from 0", .most = INT32_MAX) \
    ROW(S, INT, unix_s, "end of the block, Unix time", .most = LINE_COUNT_MAX) \
    ROW(S, INT, requests, "counted requests", .most = LINE_COUNT_MAX) \
    ROW(S, INT, failed, "counted requests that failed", .most = LINE_COUNT_MAX) \
    ROW(S, INT, late, "counted requests that this client sent more than 5 ms after they were due", \
        .most = LINE_COUNT_MAX) \
    ROW(S, INT, waiting, "requests without a first token when the last counted one was due", .most = LINE_COUNT_MAX) \
    ROW(S, TRUTH, is_growing, "the queue grew until the end: no steady state") \
    ROW(S, NUMBER, window_s, "from the first to the last due time of a counted request", .unit = "s", \
        .null = "no request") \
    ROW(S, NUMBER, offered_per_s, "requests due per second in the window", .unit = "requests/s", \
        .null = "one request") \
    ROW(S, NUMBER, completed_per_s, "answers completed per second in the window, including those during ramps", \
        .unit = "requests/s", .null = "one request") \
    ROW(S, NUMBER, mean_in_flight, "mean number of requests in flight in the window", .null = "one request") \
    ROW(S, NUMBER, client_cpu_percent, "share of the block in which this client's thread ran", .digits = 1, \
        .null = "not known") \
    ROW(S, NUMBER, client_wait_percent, "share of the block in which that thread waited for a processor", .digits = 1, \
        .null = "not known") \
    ROW(S, INT, other_requests, "other clients' requests that the server finished or was serving meanwhile, by its " \
                                "metrics", \
        .most = LINE_COUNT_MAX, .null = "not known")
#define LOAD_LINE_ROWS(ROW, ELSE, S) \
    ROW(S, TEXT, config, "file name of the configuration") \
    LOAD_ROWS(ROW, S) \
    ELSE(LIST, "ramp", "requests that were sent but not counted: [due, TTFT, T_total] in ms, null if it failed")
#define KERNELS_ROWS(ROW, ELSE, S) \
    ROW(S, TEXT, config, "file name of the configuration") \
    ROW(S, INT, sample_id, "sample whose image and prompt are used", .most = INT64_MAX) \
    ROW(S, INT, views, "crops and the global view", .most = INT32_MAX) \
    ROW(S, INT, total_sequence_length, "prompt length in tokens", .most = INT32_MAX) \
    ROW(S, NUMBER, T_total, "time of this request; timing each kernel makes it slower", \
        .unit = "ms", .null = "not timed") \
    ELSE(JSON, "stages", "one object per stage that ran on the device")
#define KERNEL_STAGE_ROWS(ROW, ELSE, S) \
    ROW(S, NUMBER, device_ms, "time between the stage's boundaries", .unit = "ms", .null = "not timed") \
    ROW(S, NUMBER, kernel_ms, "total time of its kernels, matrix products and copies", .unit = "ms", \
        .null = "not timed") \
    ROW(S, NUMBER, idle_share, "share of device_ms spent between kernels", .null = "device_ms is 0") \
    ELSE(JSON, "parts", "kernel_ms by part of the model, for parts that took time")
/* The machine's state during the runs whose lines start at `from` or later and precede this line. */
#define FIELD_HERE(member) member
#define FIELD_IN_NOISE(member) noise.member
#define NOISE_BLOCK_ROWS(AT, S, in) \
    AT(S, NUMBER, "load", in(load), "load average, which includes vlmprof's own threads", .digits = 2, \
       .null = "not known") \
    AT(S, NUMBER, "steal_percent", in(steal_percent), "share of all CPU time taken by the host of a virtual machine", \
       .digits = 1, .null = "not known") \
    AT(S, NUMBER, "other_cpu_percent", in(other_cpu_percent), \
       "share of all CPU time used by other processes and the kernel; coarse ticks can make it negative", \
       .digits = 1, .null = "not known") \
    AT(S, INT_RANGE, "frequency_mhz", in(mhz_low), "[lowest, highest] CPU frequency", .most = INT32_MAX, \
       .null = "not reported")
#define NOISE_LINE_ROWS(ROW, AT, S) \
    ROW(S, INT, from, "byte offset of the first line that it covers", .most = INT64_MAX) \
    NOISE_BLOCK_ROWS(AT, S, FIELD_IN_NOISE)
#define NOISE_COUNT(S, AT, key, member, words) AT(S, INT, key, member, words, .most = INT64_MAX)
#define NOISE_NUMBER(S, AT, key, member, words, decimals, why) \
    AT(S, NUMBER, key, member, words, .digits = decimals, .null = why)
#define NOISE_ROWS(AT, S) \
    NOISE_COUNT(S, AT, "samples", samples, "blocks with at least one known value") \
    NOISE_BLOCK_ROWS(AT, S, FIELD_HERE) \
    NOISE_COUNT(S, AT, "steal_samples", steal_samples, "blocks whose steal_percent is known") \
    NOISE_COUNT(S, AT, "stolen_samples", stolen_samples, "blocks with steal_percent of 5 or more") \
    NOISE_NUMBER(S, AT, "stolen_percent", stolen_percent, "mean steal_percent of stolen_samples", 1, "no such block") \
    NOISE_COUNT(S, AT, "other_samples", other_samples, "blocks whose other_cpu_percent is known") \
    NOISE_COUNT(S, AT, "busy_samples", busy_samples, "blocks with other_cpu_percent of 10 or more") \
    NOISE_NUMBER(S, AT, "busy_percent", busy_percent, "mean other_cpu_percent of busy_samples", 1, "no such block") \
    NOISE_NUMBER(S, AT, "neighbour_spread", spread, \
                 "relative standard deviation of one run, from pairs of neighbouring runs of equal work", 0, \
                 "fewer than 10 pairs") \
    NOISE_COUNT(S, AT, "neighbour_pairs", pair_count, "number of these pairs") \
    NOISE_NUMBER(S, AT, "bare_spread", bare_spread, "relative standard deviation of one run, from tool_cost's pairs", \
                 0, "fewer than 10 pairs") \
    NOISE_COUNT(S, AT, "bare_pairs", bare_pair_count, "number of tool_cost's pairs")
/* Writes the key "noise". */
void put_noise(vp_json_writer *writer, const vp_noise_summary *summary);

/* ---- a row of per_sample_results */
#define ROW_HEAD_ROWS(ROW, S) \
    ROW(S, INT, sample_id, "0-based line number in the data set; other engines may write a string", .most = INT64_MAX) \
    ROW(S, TEXT, status, "failed: nothing in this row was measured", .choices = "ok|failed") \
    ROW(S, TEXT, reason, "why the sample failed", .null = "it did not fail")
/* servers do not report whether their count includes the end token */
#define TOKENS_ROWS(ROW, S) \
    ROW(S, INT, output_tokens, "new tokens, including any end token", .most = INT32_MAX, .null = "not measured", \
        .column = COLUMN_OUTPUT_TOKENS) \
    ROW(S, INT, content_tokens, \
        "new tokens without the end token", .most = INT32_MAX, .null = "not measured, or a server") \
    ROW(S, TRUTH, ends_with_eos, "the answer ended with an end token", .null = "not known")
/* With --baseline. */
#define FIDELITY_NUMBER(S, ROW, key, ...) \
    ROW(S, NUMBER, key, __VA_ARGS__, .is_optional = 2, .null = "see fidelity_reason", .most = FIELD_MS_MAX)
#define FIDELITY_ROWS(ROW, S) \
    ROW(S, TEXT, baseline, "with --baseline: the configuration or file whose answer is followed", \
        .is_optional = 2, .null = "none") \
    FIDELITY_NUMBER(S, ROW, kl_divergence_mean, \
                    "mean KL divergence of the next-token distribution from the baseline's, along the baseline's " \
                    "answer; on a server: the lower bound", .unit = "nats", .column = COLUMN_DIVERGENCE) \
    FIDELITY_NUMBER(S, ROW, kl_divergence_median, "median KL divergence along the answer", .unit = "nats") \
    FIDELITY_NUMBER(S, ROW, kl_divergence_p99, "99th percentile of the KL divergence along the answer", \
                    .unit = "nats") \
    FIDELITY_NUMBER(S, ROW, kl_divergence_max, "largest KL divergence along the answer", .unit = "nats") \
    ROW(S, NUMBER, kl_divergence_mean_at_most, "server only: upper bound of kl_divergence_mean", \
        .unit = "nats", .most = FIELD_MS_MAX, .is_optional = 1) \
    FIDELITY_NUMBER(S, ROW, top1_agreement, \
                    "share of the answer's positions where both have the same most likely token", \
                    .column = COLUMN_TOP1) \
    FIDELITY_NUMBER(S, ROW, answer_agreement, \
                    "1: the greedy answer equals the baseline's; 0: it differs", .column = COLUMN_ANSWER_AGREEMENT) \
    ROW(S, INT, first_difference_index, \
        "0-based index of the first token that differs from the baseline's answer", .most = INT32_MAX, \
        .is_optional = 2, .null = "none, or not known", .column = COLUMN_FIRST_DIFFERENCE) \
    FIDELITY_NUMBER(S, ROW, first_difference_margin, \
                    "at this token: log probability of the answer's token minus the baseline's", \
                    .unit = "nats", .least = -FIELD_MS_MAX, .column = COLUMN_DIFFERENCE_MARGIN) \
    FIDELITY_NUMBER(S, ROW, first_difference_baseline_margin, \
                    "at this token: the baseline's log probability of its own token minus that of the other", \
                    .unit = "nats", .least = -FIELD_MS_MAX, .column = COLUMN_BASELINE_MARGIN) \
    ROW(S, INT, fidelity_tokens, "tokens of the baseline's answer that were compared", \
        .most = INT32_MAX, .is_optional = 2, .null = "none", .column = COLUMN_FIDELITY_TOKENS) \
    ROW(S, TEXT, fidelity_reason, "why the comparison is missing or partial", \
        .is_optional = 2, .null = "everything was compared")
/* unparsed: the reference guesses an option for such an answer; here the answer scores 0 */
#define ANSWER_ROWS(ROW, S) \
    ROW(S, NUMBER, accuracy, "score of the first run's answer", \
        .least = -1000000, .most = 1000000, .null = "see accuracy_reason", .column = COLUMN_ACCURACY) \
    ROW(S, TEXT, accuracy_reason, "why there is no score", .null = "there is a score") \
    ROW(S, BYTES, pred, "answer of the first run", FIELD_COUNT_AT(S, pred.bytes), .null = "not measured") \
    ROW(S, TEXT, pred_cleaned, "answer as scored", .null = "not scored") \
    ROW(S, TRUTH, unparsed, "the answer names no option; it scores 0", .null = "not measured") \
    ROW(S, TRUTH, truncated, "no end token within max_new_tokens", .null = "--ignore_eos, or not known") \
    ROW(S, TRUTH, empty, "the cleaned answer is empty", .null = "not scored") \
    ROW(S, INTS, output_token_ids, "new tokens of the first run", \
        FIELD_COUNT_AT(S, output_token_ids.count), .stride = sizeof(int32_t), .item_bytes = sizeof(int32_t), \
        .most = INT32_MAX, .null = "not known for a server") \
    ROW(S, TRUTH, answers_equal_over_runs, "all runs gave the same tokens", .null = "not measured") \
    ROW(S, TEXT, prompt, "text that was tokenized", .null = "none")
#define MEASURED_ROWS(ROW, S) \
    ROW(S, TEXT, stop, "why the runs ended", .choices = "runs|interval|box|max", .null = "failed") \
    ROW(S, INT, num_runs, "timed runs", .most = LINE_RUNS_MAX) \
    ROW(S, NUMBER, T_total_p50, "median of T_total over the runs", .unit = "ms", .most = FIELD_MS_MAX, \
        .null = "not measured") \
    ROW(S, RANGE, T_total_p50_interval, "interval of T_total_p50", .unit = "ms", .null = "too few runs") \
    ROW(S, NUMBER, decode_tokens_per_s, \
        "1000 / T_decode_per_token", .most = FIELD_MS_MAX, .null = "no decode step was timed") \
    ROW(S, NUMBER, output_tokens_per_s, "output tokens / mean of T_total", .most = FIELD_MS_MAX, .null = "not known") \
    ROW(S, TRUTH, slow_first_run, "the first run is far slower than the others", .null = "fewer than 5 runs")
#define MEASURED_COST_ROWS(ROW, S) \
    ROW(S, INT, stamps, "time stamps or events per run", .most = LINE_COUNT_MAX) \
    ROW(S, NUMBER, T_total_bare, "T_total of a run without stage times, excluded from all statistics", \
        .unit = "ms", .most = FIELD_MS_MAX, .null = "no such run") \
    ROW(S, NUMBER, T_total_staged, \
        "T_total of the accompanying run with stage times, excluded from all statistics", .unit = "ms", \
        .most = FIELD_MS_MAX, .null = "no such run") \
    ROW(S, INT, num_retries, "requests repeated after a device error", .most = INT32_MAX)
#define SERVED_RESULT_ROWS(ROW, AT, S) \
    AT(S, OBJECT, "usage", usage, "token counts reported by the server", .of = &USAGE) \
    ROW(S, TEXT, model, "model name reported by the server", .null = "not reported") \
    ROW(S, TEXT, finish_reason, "why the answer ended: stop, length, ...", .null = "not reported") \
    ROW(S, INT, pieces, "pieces of the answer; one may contain several tokens", .most = INT64_MAX) \
    ROW(S, INT, attempts, "number of attempts; above 1: it was sent again, and the last attempt was timed", \
        .least = 1, .most = INT32_MAX) \
    ROW(S, TRUTH, new_connection, "the times include the time to connect") \
    ROW(S, TRUTH, streamed, "false: the answer came in a single response body, so TTFT is not known") \
    ROW(S, NUMBER, sent_ms, "0: times count from the first byte sent; in older files, T_client_delay", \
        .unit = "ms", .most = FIELD_MS_MAX, .null = "not known") \
    ROW(S, NUMBER, headers_ms, "response headers received", .unit = "ms", .most = FIELD_MS_MAX, .null = "not known") \
    ROW(S, NUMBER, first_output_ms, "first piece that is not reasoning", \
        .unit = "ms", .most = FIELD_MS_MAX, .null = "not known") \
    ROW(S, TRUTH, image_dropped, "the prompt has too few tokens for its images: the server dropped one, or does not " \
        "count it", .null = "text only, or not known", .is_optional = 1) \
    ROW(S, JSON, server_timings, "the server's own times, under its names", .null = "none reported")

/* ---- a result file before its rows */
#define HEAD_COUNT(S, ROW, key, words) ROW(S, INT, key, words, .most = FIELD_COUNT_MAX)
#define READ_COUNT(S, ROW, key, words) ROW(S, INT, key, words, .most = FIELD_COUNT_MAX, .is_read = 1)
#define RESULT_ROWS(ROW, S) \
    ROW(S, TEXT, schema, "name and version of this layout", .choices = RESULT_SCHEMA) \
    ROW(S, TEXT, plan, \
        "fingerprint of everything that determines the measured points; all files in a folder have the same one") \
    ROW(S, TEXT, status, \
        "complete: every sample has a row; complete with failures: some rows have status failed; partial: samples " \
        "are missing (merge --partial)", .choices = "complete|complete with failures|partial", .is_read = 1) \
    HEAD_COUNT(S, ROW, num_failed, "rows with status failed") \
    HEAD_COUNT(S, ROW, num_ok, "rows with status ok") \
    READ_COUNT(S, ROW, num_missing, "samples without a row: merged before all processes had finished") \
    HEAD_COUNT(S, ROW, num_samples, "rows in this file") \
    ROW(S, INT, num_runs_per_sample, "requested timed runs per sample", .least = 1, .most = 1000000, .is_read = 1) \
    ROW(S, TEXT, timing, "off: only T_total was measured", .choices = "stage|off", .is_read = 1) \
    ROW(S, TRUTH, synthetic, "weights are seeded random numbers: latency is real, accuracy is not", .is_read = 1) \
    ROW(S, TEXT, model, \
        "name of the checkpoint folder or synthetic preset; on a server: its name for the model", .is_read = 1) \
    ROW(S, TEXT, architecture, "kind of model: MolmoE, LLaVA, ...", .null = "not known, or a server", .is_read = 1) \
    ROW(S, TEXT, dataset_name, \
        "--dataset_name, or the data file's stem with _ turned into -; the file's name starts with it", \
        .is_read = 1) \
    ROW(S, TEXT, data, "path of the data set as given", .is_read = 1) \
    ROW(S, TEXT, data_hash, "hash of the data set's sampled records, prompts and image sizes", .is_read = 1) \
    ROW(S, INT, max_new_tokens, "maximum tokens per answer", .least = 1, .most = 1000000000, .is_read = 1)
#define HEAD_NUMBER(S, ROW, key, words, max, why) \
    ROW(S, NUMBER, key, words, .most = max, .null = why)
#define RESULT_ACCURACY_ROWS(ROW, S) \
    ROW(S, NUMBER, accuracy, \
        "mean score of the rows that have one, in the metric's unit", .least = -1000000, .most = 1000000, \
        .null = "no row has a score", .is_read = 1) \
    HEAD_NUMBER(S, ROW, accuracy_std, \
                "population standard deviation of the scores: spread, not an error bar", FIELD_MS_MAX, \
                "no row has a score") \
    ROW(S, TEXT, accuracy_metric, "scoring rule; see vlmprof score --help", .is_read = 1) \
    ROW(S, TEXT, accuracy_from, "vlmprof score --scores: name and SHA-256 of the file with the scores", \
        .is_optional = 1, .null = "scored by the rule", .is_read = 1) \
    HEAD_COUNT(S, ROW, accuracy_count, "rows with a score") \
    ROW(S, TEXT, accuracy_reason, "why there is no accuracy", .null = "there is an accuracy") \
    ROW(S, NUMBER, accuracy_standard_error, "standard error of accuracy", \
        .most = FIELD_MS_MAX, .null = "too few scores") \
    ROW(S, RANGE, accuracy_interval, \
        "95 % interval of accuracy, [low, high]: Wilson's if all scores are 0 or 1, otherwise Gaffke's for a mean in " \
        "0..1; older files: null unless all scores are 0 or 1", .null = "there are no scores") \
    HEAD_COUNT(S, ROW, num_unparsed, "answers that name no option; they score 0") \
    HEAD_COUNT(S, ROW, num_truncated, "answers without an end token within max_new_tokens") \
    HEAD_COUNT(S, ROW, num_empty, "answers that are empty after cleaning") \
    HEAD_NUMBER(S, ROW, selected_crops_mean, "mean number of crops per image, without the global view", \
                FIELD_MS_MAX, "not known") \
    HEAD_NUMBER(S, ROW, selected_crops_std, "population standard deviation of the crops", FIELD_MS_MAX, "not known")
/* With --baseline, over all rows. */
#define FIDELITY_HEAD(S, ROW, key, ...) \
    ROW(S, NUMBER, key, __VA_ARGS__, .is_optional = 2, .null = "see fidelity_reason", .most = FIELD_MS_MAX, \
        .is_read = 1)
#define FIDELITY_INTERVAL(S, ROW, key, ...) \
    ROW(S, RANGE, key, __VA_ARGS__, .is_optional = 2, .null = "too few samples", .is_read = 1)
#define RESULT_FIDELITY_ROWS(ROW, S) \
    ROW(S, TEXT, baseline, "with --baseline: the configuration or folder used for comparison", \
        .is_optional = 2, .null = "none", .is_read = 1) \
    FIDELITY_HEAD(S, ROW, kl_divergence_mean, \
                  "mean KL divergence of the next-token distribution from the baseline's, over all tokens of the " \
                  "baseline's answers; on a server: the lower bound", .unit = "nats") \
    FIDELITY_INTERVAL(S, ROW, kl_divergence_mean_interval, \
                      "95 % interval of kl_divergence_mean, over samples", .unit = "nats") \
    ROW(S, NUMBER, kl_divergence_mean_at_most, "server only: upper bound of kl_divergence_mean", \
        .unit = "nats", .most = FIELD_MS_MAX, .is_optional = 1, .is_read = 1) \
    FIDELITY_HEAD(S, ROW, kl_divergence_median, "median KL divergence over all tokens", .unit = "nats") \
    FIDELITY_HEAD(S, ROW, kl_divergence_p99, "99th percentile of the KL divergence over all tokens", .unit = "nats") \
    FIDELITY_HEAD(S, ROW, kl_divergence_max, "largest KL divergence over all tokens", .unit = "nats") \
    FIDELITY_HEAD(S, ROW, top1_agreement, "share of all tokens where both have the same most likely token") \
    FIDELITY_INTERVAL(S, ROW, top1_agreement_interval, "95 % interval of top1_agreement, over samples") \
    FIDELITY_HEAD(S, ROW, answer_agreement, "share of rows whose answer equals the baseline's") \
    FIDELITY_INTERVAL(S, ROW, answer_agreement_interval, "Wilson's 95 % interval of answer_agreement") \
    FIDELITY_HEAD(S, ROW, first_difference_index, \
                  "0-based index of the first token that differs: median over the rows that differ") \
    FIDELITY_HEAD(S, ROW, first_difference_margin, \
                  "at this token: log probability of the answer's token minus the baseline's, median", \
                  .unit = "nats", .least = -FIELD_MS_MAX) \
    FIDELITY_HEAD(S, ROW, first_difference_baseline_margin, \
                  "at this token: the baseline's log probability of its own token minus that of the other, median", \
                  .unit = "nats", .least = -FIELD_MS_MAX) \
    ROW(S, INT, num_ties, "differing rows with a baseline margin (if unknown: their own) of less than 0.1 nats", \
        .most = FIELD_COUNT_MAX, .is_optional = 2, .null = "none", .is_read = 1) \
    ROW(S, INT, fidelity_tokens, "tokens of the baseline's answers that were compared", \
        .most = FIELD_COUNT_MAX, .is_optional = 2, .null = "none", .is_read = 1) \
    ROW(S, INT, fidelity_count, "rows that were compared", .most = FIELD_COUNT_MAX, .is_optional = 2, \
        .null = "none", .is_read = 1) \
    ROW(S, TEXT, fidelity_reason, "why a part was not compared, from the first such row", \
        .is_optional = 2, .null = "everything was compared", .is_read = 1)
#define RESULT_VISION_ROWS(ROW, S) \
    HEAD_NUMBER(S, ROW, target_vision_tokens_mean, "mean requested vision tokens", FIELD_MS_MAX, \
                "no row has an image") \
    HEAD_NUMBER(S, ROW, target_vision_tokens_std, \
                "population standard deviation of requested vision tokens", FIELD_MS_MAX, "no row has an image") \
    HEAD_NUMBER(S, ROW, actual_vision_tokens_mean, "mean vision tokens per sequence", FIELD_MS_MAX, "not known") \
    HEAD_NUMBER(S, ROW, actual_vision_tokens_std, \
                "population standard deviation of vision tokens in the sequence", FIELD_MS_MAX, "not known") \
    ROW(S, INT, max_crops, "maximum number of crops in the configuration", .least = 1, \
        .most = INT32_MAX, .null = "not known") \
    ROW(S, INT, theoretical_num_crops, \
        "crops of the most frequent tiling", .most = INT32_MAX, .null = "no row has an image") \
    ROW(S, PAIR, theoretical_tiling, "most frequent tiling, [rows, columns]", \
        .most = INT32_MAX, .null = "no row has an image") \
    ROW(S, PAIR, theoretical_image_size, "size of the most frequent tiling, [height, width]", .unit = "px", \
        .most = INT32_MAX, .null = "no row has an image") \
    ROW(S, INT, theoretical_vision_tokens, \
        "vision tokens of the tiling without overlap: (crops + 1) * tokens of a crop", .most = INT32_MAX, \
        .null = "no row has an image") \
    HEAD_COUNT(S, ROW, num_runs, "timed runs of all samples in this file") \
    READ_COUNT(S, ROW, num_outlier_runs, "runs far from the median of their point; they are kept") \
    READ_COUNT(S, ROW, num_throttled_runs, "runs during which the device was throttled; they are kept") \
    HEAD_COUNT(S, ROW, num_retries, "requests repeated after a device error")
#define RESULT_TIME_ROWS(ROW, S) \
    ROW(S, TEXT, measured_from, "end of the first run, UTC, ISO 8601", .null = "nothing was measured", .is_read = 1) \
    ROW(S, TEXT, measured_to, "end of the last run, UTC, ISO 8601", .null = "nothing was measured", .is_read = 1) \
    HEAD_COUNT(S, ROW, sessions, "number of sessions (program starts) that measured rows of this file")
#define TOOL_COST_ROWS(ROW, S) \
    ROW(S, NUMBER, stamps_per_request, "time stamps or events per request", .most = FIELD_MS_MAX, .null = "not known") \
    ROW(S, NUMBER, stamp_cost_ns, "cost of one time stamp or event, measured in the session", .unit = "ns", \
        .most = FIELD_MS_MAX, .null = "not known") \
    ROW(S, NUMBER, stamps_share, \
        "stamps_per_request x stamp_cost_ns / mean of T_total", .most = FIELD_MS_MAX, .null = "not known") \
    HEAD_COUNT(S, ROW, bare_pairs, "number of pairs") \
    ROW(S, NUMBER, bare_difference_ms, "mean T_total with minus without stage " \
                                       "times", .unit = "ms", .null = "no pairs") \
    ROW(S, RANGE, bare_difference_ms_interval, "interval of bare_difference_ms", \
        .unit = "ms", .null = "too few pairs") \
    ROW(S, NUMBER, bare_difference_share, "bare_difference_ms / mean without stage times", .null = "no pairs") \
    ROW(S, RANGE, bare_difference_share_interval, "interval of bare_difference_share", .null = "too few pairs") \
    ROW(S, NUMBER, bare_difference_share_median, \
        "median difference, as a fraction of the mean without stage times", .null = "no pairs") \
    ROW(S, RANGE, bare_difference_share_median_interval, \
        "interval of bare_difference_share_median", .null = "too few pairs")

/* ---- keys of result files that other code writes: these rows only describe them */
#define TIER_RANGE_ROWS(ELSE) \
    ELSE(INT, "min_crops", "fewest crops", .least = 1) \
    ELSE(INT, "max_crops", "most crops", .least = 1)
#define API_FIRST(id, name, path, text) #name
#define API_NEXT(id, name, path, text) "|" #name
#define SETTING_ROWS(ELSE) \
    ELSE(OBJECT, "tier_range", "crops that the tier allows", .of = &TIER_RANGE, .null = "no tier") \
    ELSE(INT, "image_knob_value", "numeric value of image_knob", .least = 1, .null = "none") \
    ELSE(INT, "num_total_blocks", "decoder blocks of the model", .least = 1, .null = "not known for a server") \
    ELSE(OBJECT, "model_shape", "dimensions of the model, from its checkpoint", .of = &MODEL_SHAPE, \
         .null = "a server, or a journal of an older version") \
    ELSE(INTS, "active_block_indices", "0-based indices of the blocks that run, ascending", .null = "a server") \
    ELSE(TEXT, "endpoint_api", "server only: API used for the requests", .is_optional = 1, \
         .choices = VP_CHAT_APIS(API_FIRST, API_NEXT)) \
    ELSE(TEXT, "family", "server only: model family whose rule counts image tokens", .is_optional = 1, \
         .null = "no --family") \
    ELSE(JSON, "family_keys", "server only: keys of the rule that were set on the command line", .is_optional = 1)
#define STOPS_ROWS(ELSE) \
    ELSE(INT, "runs", "points with num_runs_per_sample runs; no half-width was requested") \
    ELSE(INT, "interval", "points whose confidence interval for the P50 became narrow enough") \
    ELSE(INT, "box", "points that reached the time limit") \
    ELSE(INT, "max", "points with max_runs runs")
#define SERVER_TIME_ROWS(ELSE) \
    ELSE(NUMBER, "image", "median with the image", .most = FIELD_MS_MAX, .null = "not known") \
    ELSE(NUMBER, "text", "median with the text", .most = FIELD_MS_MAX, .null = "not known") \
    ELSE(NUMBER, "difference", "median of the pairs' differences")
#define OUTSIDE_MS(ELSE, key, words, why) ELSE(NUMBER, key, words, .unit = "ms", .most = FIELD_MS_MAX, .null = why)
#define OUTSIDE_ROWS(ELSE) \
    ELSE(NUMBER, "ms", "median of the pairs' differences: preprocessing, upload and vision encoder", .unit = "ms", \
         .null = "fewer than 5 usable pairs") \
    ELSE(NUMBER, "low", "lower end of a range between two differences that covers the median", .unit = "ms", \
         .null = "fewer than 5 usable pairs") \
    ELSE(NUMBER, "high", "upper end of this range", .unit = "ms", .null = "fewer than 5 usable pairs") \
    ELSE(NUMBER, "level", "confidence level of this interval", .most = 1, .null = "fewer than 5 usable pairs") \
    ELSE(TEXT, "basis", \
         "the time that is compared: TTFT; if an answer had no text, the first chunk of the stream or the " \
         "server's own prompt time; older files: TTFT", .choices = "TTFT|first_chunk|server_prompt_ms", \
         .is_optional = 1) \
    ELSE(TEXT, "method", "adjusted: pairs with unequal numbers of tokens are corrected by ms_per_token", \
         .choices = "exact|adjusted") \
    ELSE(INT, "pairs", "usable pairs") \
    ELSE(INT, "pairs_adjusted", "usable pairs that were corrected") \
    ELSE(INT, "pairs_cached", "pairs dropped: at least half of a prompt came from a cache") \
    ELSE(INT, "pairs_unequal", "pairs dropped: their numbers of tokens differ") \
    ELSE(INT, "pairs_silent", "pairs dropped: an answer had no text") \
    OUTSIDE_MS(ELSE, "TTFT_image", "median TTFT with the image", "no usable pair") \
    OUTSIDE_MS(ELSE, "TTFT_text", "median TTFT with the text", "no usable pair") \
    OUTSIDE_MS(ELSE, "floor_ms", "median TTFT of a text-only request of a few tokens", "no usable pair") \
    OUTSIDE_MS(ELSE, "upload_ms", "median time from the first to the last byte of the image request", "not known") \
    ELSE(NUMBER, "ms_per_token", "cost of a text token", .unit = "ms", .null = "nothing was corrected") \
    ELSE(OBJECT, "first_chunk_ms", "median time to the first chunk of the stream", .unit = "ms", .of = &SERVER_TIME, \
         .null = "not known", .is_optional = 1) \
    ELSE(OBJECT, "server_prompt_ms", "median time of the prompt by the server's own clock", .unit = "ms", \
         .of = &SERVER_TIME, .null = "not reported") \
    ELSE(INT, "prompt_tokens", "prompt tokens in the image request", .null = "several samples") \
    ELSE(INT, "image_tokens", "prompt_tokens minus the tokens of the question without the image", \
         .null = "several samples")
#define OUTSIDE_WORDS \
    "server only: TTFT of the image request minus that of a text request with the same number of prompt tokens, in " \
    "pairs"
#define COUNTS_OF_RESULT_ROWS(ELSE) \
    ELSE(JSON, "selected_crops_distribution", "number of crops -> rows with that number") \
    ELSE(JSON, "first_difference_distribution", "with --baseline: index of the first token that differs -> rows", \
         .is_optional = 1) \
    ELSE(OBJECT, "stops", "number of points, by the reason their runs ended", .of = &STOPS) \
    ELSE(INT, "num_cached_runs", "server only: runs in which at least half of the prompt came from its cache", \
         .is_optional = 1) \
    ELSE(INT, "num_dropped_image_runs", "server only: runs with image_dropped", .is_optional = 1) \
    ELSE(OBJECT, "T_image_outside", OUTSIDE_WORDS ", over the request pairs of all samples", .of = &OUTSIDE, \
         .is_optional = 1, .null = "see null_reasons") \
    ELSE(JSON, "null_reasons", "server only: why keys are null, by key", .is_optional = 1)
#define GPU_ROWS(ELSE) \
    ELSE(INT, "index", "device number") \
    ELSE(TEXT, "name", "name reported by the driver") \
    ELSE(TEXT, "compute_capability", "major.minor") \
    ELSE(INT, "multiprocessors", "streaming multiprocessors", .least = 1) \
    ELSE(INT, "memory_bytes", "device memory") \
    ELSE(INT, "free_bytes", "free memory when the engine was opened", .null = "not known") \
    ELSE(TEXT, "driver", "CUDA version of the driver") \
    ELSE(TEXT, "runtime", "CUDA version of the runtime")
#define COLD_ROWS(ELSE) \
    ELSE(NUMBER, "T_total", "time from pixels to text", .unit = "ms", .most = FIELD_MS_MAX, .null = "not timed") \
    ELSE(NUMBER, "TTFT", "time to the first token", .unit = "ms", .most = FIELD_MS_MAX, .null = "not timed") \
    ELSE(INT, "views", "crops and the global view") \
    ELSE(INT, "total_sequence_length", "prompt positions") \
    ELSE(INT, "output_tokens", "new tokens")
#define SERVER_WORDS_ROWS(ELSE) \
    ELSE(TEXT, "endpoint", "base URL of the server") \
    ELSE(TEXT, "server", "name and version of the server", .null = "not reported") \
    ELSE(JSON, "models", "answer to /v1/models", .null = "none, or over 64 KiB") \
    ELSE(JSON, "props", "answer to /props", .null = "none, or over 64 KiB") \
    ELSE(LIST, "cold", "the session's first request of each variant: variant, T_total, TTFT, usage; excluded from " \
                       "all statistics")
#define PROVENANCE_ROWS(ELSE) \
    SESSION_ROWS(ELSE) \
    ELSE(TEXT, "kernel", "release of the operating system's kernel", .null = "not known", .is_optional = 1) \
    ELSE(TEXT, "device", "device that ran the model", .null = "not known for a server") \
    ELSE(TEXT, "device_note", "why this device was used", .null = "it was requested", .is_optional = 1) \
    ELSE(OBJECT, "gpu", "the GPU", .of = &GPU, .null = "a CPU", .is_optional = 1) \
    ELSE(TEXT, "gemm_rows_1", "matrix kernel for one row (decode)", .null = "not known for a server", \
         .is_optional = 1) \
    ELSE(TEXT, "gemm_rows_1024", "matrix kernel for many rows (prefill)", .null = "not known for a server", \
         .is_optional = 1) \
    ELSE(INT, "threads", "--threads; 0: all", .null = "not known for a server", .is_optional = 1) \
    ELSE(INT, "seed", "seed for weights, samples and caption prompts", .null = "not known for a server") \
    ELSE(JSON, "clocks", "clocks, power, temperature", .null = "not read", .is_optional = 1) \
    ELSE(TEXT, "client", "servers only: library that sent the requests", .is_optional = 1) \
    ELSE(OBJECTS, "servers", "servers only: each server's description of itself", .of = &SERVER_WORDS, \
         .is_optional = 1) \
    ELSE(OBJECT, "cold", "the session's first request, excluded from all statistics", .of = &COLD, .is_optional = 1)
#define RESULT_END_ROWS(ELSE) \
    ELSE(JSON, "provenance", "provenance of the latest session; further keys may be added", .of = &PROVENANCE, \
         .null = "nothing was measured") \
    ELSE(LIST, "session_list", "provenance of each start of the engine that measured rows of this file; " \
                               "run_flags.session is a 0-based index into this list") \
    ELSE(OBJECT, "tool_cost", "cost of measuring: time stamps, and pairs of runs with and without stage times; no " \
                              "other statistic includes them", .of = &TOOL_COST) \
    ELSE(OBJECT, "noise", "other activity of the machine during the blocks of runs that contain this file's " \
                          "runs; missing in older files", .of = &NOISE, .is_optional = 1) \
    ELSE(OBJECTS, "load", "servers under load: each block of requests", .of = &LOAD, .is_optional = 1) \
    ELSE(OBJECTS, "kernel_pass", "one request per shape with each kernel timed separately (--kernel_pass); no other " \
                                 "statistic includes its times", .of = &KERNELS) \
    ELSE(JSON, "config", "value of every option of the command, given or default; further keys may be added") \
    ELSE(JSON, "aggregate_stats", "statistics of the rows with status ok") \
    ELSE(JSON, "latency_stats", "same as aggregate_stats; the reference implementation's scripts read this name") \
    ELSE(JSON, "statistics", "statistics of every time and share, by key: over_samples (of the samples' means " \
                             "over their runs) and over_runs (of individual runs)") \
    ELSE(OBJECTS, "per_sample_results", "one row per sample, sorted by sample_id")
#define AGGREGATE_ROWS(ELSE) \
    ELSE(NUMBER, "vision_tokens_mean", "mean of actual_vision_tokens", .most = FIELD_MS_MAX, .null = "not known") \
    ELSE(NUMBER, "vision_tokens_std", "population standard deviation of actual_vision_tokens", \
         .most = FIELD_MS_MAX, .null = "not known") \
    ELSE(NUMBER, "vision_tokens_diff_mean", "mean of target minus actual vision tokens", .null = "not known") \
    ELSE(JSON, "T_decode_per_step_stats", \
         "statistics over samples and runs of pos_1 (the first decode step), pos_2, ...")
#define STAGE_DETAIL_ROWS(ELSE) \
    ELSE(NUMBER, "wall_ms", "wall time by the host's clock; on a GPU, only the time to submit the work", .unit = "ms", \
         .most = FIELD_MS_MAX, .null = "did not run") \
    ELSE(NUMBER, "device_ms", "time between the stage's boundaries on the device", .unit = "ms", .most = FIELD_MS_MAX, \
         .null = "a host stage") \
    ELSE(NUMBER, "launches", "number of kernels, matrix products and copies", .most = FIELD_MS_MAX, \
         .null = "a host stage") \
    ELSE(NUMBER, "flops", "floating-point operations of the launches", .unit = "FLOP", .most = INT64_MAX, \
         .null = "a host stage") \
    ELSE(NUMBER, "bytes", "total size of the operands, each counted once per launch", .most = INT64_MAX, \
         .null = "a host stage")
#define ROW_TIMES_ROWS(ELSE) \
    ELSE(NUMBER, "energy_resolution_j", "energy that the GPU used per step of the counter", .unit = "J", \
         .most = FIELD_MS_MAX, .is_optional = 1) \
    ELSE(JSON, "metadata", "the fields of the data set's record") \
    ELSE(JSON, "stages", "mean over the runs of device_ms, or of wall_ms for host stages; null: did not run", \
         .unit = "ms") \
    ELSE(JSON, "stage_detail", "details of each stage, means over the runs") \
    ELSE(LIST, "T_decode_per_step", "time of each decode step, [position][run]; position 0 is step 1", .unit = "ms") \
    ELSE(JSON, "runs", "every number of every run, in run order; null: the part did not run")
#define RUN_FLAGS_ROWS(ELSE) \
    ELSE(LIST, "outlier", "modified z-score of T_total above 3.5; null: fewer than 5 runs") \
    ELSE(LIST, "throttled", "throttled because of power or temperature") \
    ELSE(LIST, "session", "index into session_list") \
    ELSE(LIST, "telemetry", "clocks [MHz], power [W], temperature [Celsius], throttle reasons after the run") \
    ELSE(LIST, "steal_percent", "noise's steal_percent for the run's block; null: not known") \
    ELSE(LIST, "other_cpu_percent", "noise's other_cpu_percent for the run's block; null: not known")
#define ROW_FLAGS_ROWS(ELSE) ELSE(OBJECT, "run_flags", "flags of each run, in order", .of = &RUN_FLAGS)
#define ROW_SERVED_ROWS(ELSE) \
    ELSE(OBJECT, "usage", "server only: token counts of the first run", .of = &USAGE) \
    ELSE(LIST, "itl", "server only: one list per run, times between consecutive pieces of the answer", .unit = "ms") \
    ELSE(TRUTH, "image_dropped", "server only: at least one run has image_dropped", .is_optional = 1, \
         .null = "text only, or not known") \
    ELSE(OBJECTS, "served_runs", "server only: details of each run", .of = &SERVED_RESULT) \
    ELSE(OBJECT, "twins", "server only: this sample's pairs, from which T_image_outside is computed", \
         .of = &RESULT_TWINS, .null = "--twins was not given, or there is no image") \
    ELSE(OBJECT, "T_image_outside", OUTSIDE_WORDS, .of = &OUTSIDE, .null = "no pair was measured")

/* All keys of a result file, of a row in it and of a run in a journal, for `help definitions`. */
#define RESULT_KEYS(ROW, AT, ELSE) \
    RESULT_ROWS(ROW, 0) SETTING_ROWS(ELSE) RESULT_ACCURACY_ROWS(ROW, 0) RESULT_FIDELITY_ROWS(ROW, 0) \
    RESULT_VISION_ROWS(ROW, 0) \
    COUNTS_OF_RESULT_ROWS(ELSE) RESULT_TIME_ROWS(ROW, 0) RESULT_END_ROWS(ELSE)
#define SAMPLE_KEYS(ROW, AT, ELSE) \
    ROW_HEAD_ROWS(ROW, 0) SIZES_ROWS(ROW, 0, FIELD_NULL) TOKENS_ROWS(ROW, 0) ANSWER_ROWS(ROW, 0) \
    FIDELITY_ROWS(ROW, 0) ROW_TIMES_ROWS(ELSE) \
    MEASURED_ROWS(ROW, 0) ROW_FLAGS_ROWS(ELSE) MEASURED_COST_ROWS(ROW, 0) SENT_ROWS(ROW, AT, 0) ROW_SERVED_ROWS(ELSE)
#define RUN_KEYS(ROW, AT, ELSE) RUN_ROWS(ROW, AT, 0) SERVED_PASS_ROWS(AT, 0)

/* The numbers of a sample that reports read, one array per number: means over its runs, times in ms. METRIC_* come
 * first. The DETAIL_* of each stage start at COLUMN_STAGE: see stage_column in results/result_read.h. */
enum {
    COLUMN_NONE, /* a row that reports do not read */
    COLUMN_ACCURACY = METRIC_STAGE,
    COLUMN_VIEWS,
    COLUMN_IMAGES,          /* NaN if there is at most one */
    COLUMN_VIEWS_OF_IMAGES, /* the same */
    COLUMN_VISION_TOKENS,
    COLUMN_TEXT_TOKENS,
    COLUMN_PROMPT,      /* prompt positions */
    COLUMN_SEQUENCE,    /* prompt positions; with pruning, the mean over decoder blocks */
    COLUMN_KEPT_TOKENS, /* with pruning: kept image tokens; bytes of the KV cache with and without pruning */
    COLUMN_CACHE_BYTES,
    COLUMN_FULL_CACHE_BYTES,
    COLUMN_OUTPUT_TOKENS,
    /* with --baseline: see FIDELITY_ROWS */
    COLUMN_DIVERGENCE, COLUMN_TOP1, COLUMN_ANSWER_AGREEMENT, COLUMN_FIRST_DIFFERENCE, COLUMN_DIFFERENCE_MARGIN,
    COLUMN_BASELINE_MARGIN, COLUMN_FIDELITY_TOKENS,
    COLUMN_IMAGE_BYTES,    /* size of the image that was sent, in bytes; 0 if none was */
    COLUMN_IMAGE_OUTSIDE,  /* the image's cost by its twins, in ms, and the tokens it adds to the prompt */
    COLUMN_IMAGE_TOKENS,
    COLUMN_ROW,            /* its place in per_sample_results */
    COLUMN_STAGE,
    COLUMN_COUNT = COLUMN_STAGE + DETAIL_COUNT * VP_STAGE_COUNT
};

/* The structs of the lines. Each ROW has its own member. */
struct head_line { HEAD_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) };
struct model_shape { MODEL_SHAPE_ROWS(FIELD_MEMBER, 0) };
struct data_line { DATA_ROWS(FIELD_MEMBER, 0) };
struct configuration_line { CONFIGURATION_ROWS(FIELD_MEMBER, 0) };
struct sample_line { SAMPLE_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) };
/* pass: contains the texts and lists of the run when written, of the line when read */
struct run_line { RUN_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) int32_t step_count; struct pass_result pass; };
struct bare_line { BARE_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) struct bare_pair pair; };
struct twins_object { TWINS_OBJECT_ROWS(FIELD_MEMBER, 0) int32_t count; };
struct twins_line { TWINS_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) struct twins_object twins; };
struct done_line { DONE_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) };
struct failed_line { FAILED_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) };
struct sizes { SIZES_ROWS(FIELD_MEMBER, 0, FIELD_NEVER_NULL) };
struct sent_image { SENT_IMAGE_ROWS(FIELD_MEMBER, 0) };
struct served_sizes { SERVED_SIZES_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) struct sent_image *sent_image; };
struct kernels_line { KERNELS_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) };
struct kernel_stage { KERNEL_STAGE_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) };
struct load_line { LOAD_LINE_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) };
struct noise_line { NOISE_LINE_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) vp_noise noise; };
struct row_head { ROW_HEAD_ROWS(FIELD_MEMBER, 0) };
struct tokens { TOKENS_ROWS(FIELD_MEMBER, 0) };
struct answer { ANSWER_ROWS(FIELD_MEMBER, 0) };
struct fidelity_line { FIDELITY_LINE_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) struct fidelity fidelity; };
struct fidelity_row { FIDELITY_ROWS(FIELD_MEMBER, 0) };
struct measured_row { MEASURED_ROWS(FIELD_MEMBER, 0) };
struct measured_cost { MEASURED_COST_ROWS(FIELD_MEMBER, 0) };
struct served_result { SERVED_RESULT_ROWS(FIELD_MEMBER, FIELD_SKIP, 0) vp_chat_usage usage; };
struct result_head { RESULT_ROWS(FIELD_MEMBER, 0) };
struct result_accuracy { RESULT_ACCURACY_ROWS(FIELD_MEMBER, 0) };
struct result_fidelity { RESULT_FIDELITY_ROWS(FIELD_MEMBER, 0) };
struct result_vision { RESULT_VISION_ROWS(FIELD_MEMBER, 0) };
struct result_time { RESULT_TIME_ROWS(FIELD_MEMBER, 0) };
struct tool_cost { TOOL_COST_ROWS(FIELD_MEMBER, 0) };

extern const struct fields HEAD, MODEL_SHAPE, SERVER, DATA, CONFIGURATION, SESSION, SERVED_SESSION, SAMPLE, RUN,
    SERVED_RUN, SERVED, USAGE, BARE, BARE_PAIR, TWIN_PAIR, TWINS, TWINS_OBJECT, RESULT_TWINS, DONE, FAILED, SIZES,
    RESULT_SIZES, SERVED_SIZES, SENT, SENT_IMAGE, LOAD, LOAD_LINE, KERNELS,
    KERNEL_STAGE, NOISE_LINE, NOISE, ROW_HEAD, ANSWER_TOKENS,
    ANSWER, MEASURED, MEASURED_COST, SERVED_RESULT, RESULT, RESULT_ACCURACY, RESULT_VISION, RESULT_TIME, TOOL_COST,
    DIVERGENCE, FIDELITY_OBJECT, FIDELITY_LINE, FIDELITY, RESULT_FIDELITY;

#endif
