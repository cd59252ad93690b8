/* result_scores.c: puts the scores of an outside scorer into result files. Scores come in as lines of JSON and are
 * matched with the rows of the files by id. In the text of a file only the members about accuracy are replaced. */

#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "base/json.h"
#include "base/table.h"
#include "results/result_read.h"
#include "vlmprof_analysis.h"
#include "vlmprof_file.h"

#include <errno.h>
#include <math.h>

enum { NAMED_MOST = 5, CONFIG_BYTES = 256 };

/* ---- result files, one after another */
struct open_result { char *text; size_t bytes; struct parsed parsed; uint32_t rows; };
static void open_result_free(struct open_result *open) { FREE_ALL(open->text, open->parsed.nodes); }
/* Reads a file that results_read has accepted. Returns 0 or an exit code. */
static int open_result(struct open_result *open, const char *path) {
    vp_error error = {VP_OK, -1, "", ""};
    memset(open, 0, sizeof *open);
    vp_result result = vp_file_read(path, SIZE_MAX / 4, &open->text, &open->bytes, &error);
    if (result == VP_OK) result = parse_json(&open->parsed, open->text, open->bytes, &error);
    open->rows = result == VP_OK ? vp_json_get(&open->parsed.json, 0, "per_sample_results") : VP_JSON_NONE;
    if (node_is(&open->parsed.json, open->rows, VP_JSON_ARRAY)) return 0;
    open_result_free(open);
    return result == VP_OK ? complain(EXIT_INPUT, "%s: the file has changed", path)
                           : complain_result(EXIT_INPUT, path, result, &error);
}
/* The name of a configuration: its file without folder and ".json". */
static const char *config_name(const char *path, char out[CONFIG_BYTES]) {
    const char *name = name_in_path(path);
    const size_t bytes = strlen(name), end = bytes > 5 && !strcmp(name + bytes - 5, ".json") ? bytes - 5 : bytes;
    snprintf(out, CONFIG_BYTES, "%.*s", (int)end, name);
    return out;
}
/* The record's own id, a number or a text; otherwise VP_JSON_NONE. */
static uint32_t own_id(const vp_json *json, uint32_t row) {
    const uint32_t metadata = vp_json_get(json, row, "metadata"),
                   id = node_is(json, metadata, VP_JSON_OBJECT) ? vp_json_get(json, metadata, "id") : VP_JSON_NONE;
    return node_is(json, id, VP_JSON_NUMBER) || node_is(json, id, VP_JSON_STRING) ? id : VP_JSON_NONE;
}
static int has_answer(const vp_json *json, uint32_t row) {
    const uint32_t status = vp_json_get(json, row, "status");
    return (status == VP_JSON_NONE || vp_json_equals(json, status, "ok"))
           && node_is(json, vp_json_get(json, row, "pred"), VP_JSON_STRING);
}

/* ---- predictions */
static vp_result put_prediction(const struct result_file *file, const vp_json *json, uint32_t row,
                                struct text_buffer *line) {
    static const char *const ours[] = {"id", "sample_id", "config", "dataset_name", "prediction"};
    const uint32_t id = own_id(json, row), metadata = vp_json_get(json, row, "metadata"),
                   sample = vp_json_get(json, row, "sample_id");
    char config[CONFIG_BYTES];
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, line, 0);
    PUT(&writer, KEY_OBJECT(NULL));
    vp_json_key(&writer, "id");
    json_node(&writer, json, id == VP_JSON_NONE ? sample : id);
    vp_json_key(&writer, "sample_id");
    json_node(&writer, json, sample);
    PUT(&writer, KEY("config", config_name(file->path, config)), KEY("dataset_name", file->dataset_name));
    vp_json_key(&writer, "prediction");
    json_node(&writer, json, vp_json_get(json, row, "pred"));
    for (uint32_t i = metadata + 1; node_is(json, metadata, VP_JSON_OBJECT) && i < json->nodes[metadata].end;
         i = json->nodes[i + 1].end) {
        size_t k = 0;
        while (k < sizeof ours / sizeof *ours && !vp_json_equals(json, i, ours[k])) k++;
        char *key = k < sizeof ours / sizeof *ours ? NULL : node_text(json, i);
        if (!key) continue;
        vp_json_key(&writer, key);
        json_node(&writer, json, i + 1);
        free(key);
    }
    vp_json_end_object(&writer);
    return vp_json_finish(&writer);
}
int predictions_print(const char *const *operands, size_t operand_count) {
    struct text_buffer line = {NULL, 0, 0};
    struct results results;
    size_t without = 0;
    int code = results_read(&results, operands, operand_count);
    for (size_t i = 0; i < results.count && !code; i++) {
        struct open_result open;
        if ((code = open_result(&open, results.files[i].path)) != 0) break;
        const vp_json *json = &open.parsed.json;
        for (uint32_t row = open.rows + 1; row < json->nodes[open.rows].end && !code; row = json->nodes[row].end) {
            line.bytes = 0;
            if (!has_answer(json, row)) without++;
            else if (put_prediction(&results.files[i], json, row, &line) != VP_OK)
                code = complain(EXIT_WORK, "%s: a row cannot be written as JSON", results.files[i].path);
            else {
                text_add(&line, "\n", 1);
                if (fwrite(line.data, 1, line.bytes, stdout) != line.bytes) code = output_failed();
            }
        }
        open_result_free(&open);
    }
    if (!code && without)
        complain(0, "%zu sample%s no answer (their measurement failed) and no line here", without,
                 without == 1 ? " has" : "s have");
    free(line.data);
    results_free(&results);
    return code;
}

/* ---- lines of scores */
struct score_line {
    int64_t number; /* of the line */
    uint64_t id;    /* hash of its id */
    char *name;     /* the id as written */
    int is_sample_id;
    size_t file; /* the only result file it is for; SIZE_MAX: any */
    double score;
    size_t row_count; /* rows that it scores */
    uint64_t answer;  /* hash of the first answer that it scores */
    int is_repeated, has_other_answers;
};
/* A row of a result file: its ids and its score. */
struct score_row { uint64_t own, sample, answer; size_t file, line; int has_answer, is_double; };
struct score_key { uint64_t id; size_t row; };
COMPARE_BY(compare_keys, struct score_key, id)
struct score_job {
    const struct score_request *request;
    struct results results;
    struct score_line *lines; size_t line_count;
    struct score_row *rows; size_t row_count, *first; /* rows of file i: first[i] .. first[i + 1] - 1 */
    struct score_key *own, *sample; size_t own_count; /* rows by their ids; [row_count] by sample_id */
    struct some_names { size_t count; struct text_list first; } unknown, repeated, missing;
    char from[LINE_BYTES];
};

static uint64_t id_of(const vp_json *json, uint32_t node) { /* 7 and "7" are one id */
    char *text = json->nodes[node].escaped ? node_text(json, node) : NULL;
    if (text) {
        const uint64_t hash = hash_bytes(HASH_START, text, strlen(text));
        free(text);
        return hash;
    }
    return hash_bytes(HASH_START, json->text + json->nodes[node].start, (size_t)json->nodes[node].bytes);
}
static int read_rows(struct score_job *job) {
    const struct results *results = &job->results;
    int code = 0;
    job->first = zeroed(results->count + 1, sizeof *job->first);
    for (size_t i = 0; i < results->count && !code; i++) {
        struct open_result open;
        if ((code = open_result(&open, results->files[i].path)) != 0) break;
        const vp_json *json = &open.parsed.json;
        job->rows = resize(job->rows, job->row_count + json->nodes[open.rows].count, sizeof *job->rows);
        for (uint32_t at = open.rows + 1; at < json->nodes[open.rows].end; at = json->nodes[at].end) {
            struct score_row *row = &job->rows[job->row_count++];
            const uint32_t own = own_id(json, at), sample = vp_json_get(json, at, "sample_id");
            *row = (struct score_row){.file = i, .line = SIZE_MAX, .has_answer = has_answer(json, at)};
            row->own = own == VP_JSON_NONE ? 0 : id_of(json, own);
            row->sample = sample == VP_JSON_NONE ? 0 : id_of(json, sample);
            if (row->has_answer) row->answer = id_of(json, vp_json_get(json, at, "pred"));
        }
        job->first[i + 1] = job->row_count;
        open_result_free(&open);
    }
    if (code) return code;
    job->own = resize(NULL, job->row_count + 1, sizeof *job->own);
    job->sample = resize(NULL, job->row_count + 1, sizeof *job->sample);
    for (size_t i = 0; i < job->row_count; i++) {
        job->sample[i] = (struct score_key){job->rows[i].sample, i};
        if (job->rows[i].own) job->own[job->own_count++] = (struct score_key){job->rows[i].own, i};
    }
    if (job->own_count) qsort(job->own, job->own_count, sizeof *job->own, compare_keys);
    if (job->row_count) qsort(job->sample, job->row_count, sizeof *job->sample, compare_keys);
    return 0;
}
/* The result file of a "config": its name, with or without ".json". Returns 0 or an exit code. */
static int find_config(const struct score_job *job, const char *name, struct score_line *line) {
    char wanted[CONFIG_BYTES], config[CONFIG_BYTES];
    config_name(name, wanted);
    for (size_t i = 0; i < job->results.count && line->file == SIZE_MAX; i++)
        if (!strcmp(config_name(job->results.files[i].path, config), wanted)) line->file = i;
    return line->file != SIZE_MAX ? 0
                                  : complain(EXIT_INPUT, "%s: line %lld: no result file is named \"%.200s\"",
                                             job->request->file, (long long)line->number, name);
}
static int read_line(struct score_job *job, const vp_json *json, int64_t number) {
    const char *path = job->request->file;
    uint32_t config = vp_json_get(json, 0, "config"), id = vp_json_get(json, 0, "id");
    struct score_line line = {.number = number, .file = SIZE_MAX};
    line.is_sample_id = id == VP_JSON_NONE;
    if (line.is_sample_id) id = vp_json_get(json, 0, "sample_id");
    if (!node_is(json, id, VP_JSON_NUMBER) && !node_is(json, id, VP_JSON_STRING))
        return complain(EXIT_INPUT, "%s: line %lld: expected {\"id\": .., \"score\": ..}; \"id\" must be a number or a "
                                    "string", path, (long long)number);
    line.score = node_number(json, vp_json_get(json, 0, "score"));
    if (!(line.score >= 0 && line.score <= 1))
        return complain(EXIT_INPUT, "%s: line %lld: \"score\" must be a number from 0 to 1", path, (long long)number);
    if (has_value(json, 0, "config")) {
        char *name = node_text(json, config);
        int code = name ? find_config(job, name, &line)
                        : complain(EXIT_INPUT, "%s: line %lld: \"config\" must be the name of a result file", path,
                                   (long long)number);
        free(name);
        if (code) return code;
    }
    line.id = id_of(json, id);
    line.name = copy_text(json->text + json->nodes[id].start, (size_t)json->nodes[id].bytes);
    *ADDED(job->lines, job->line_count) = line;
    return 0;
}
/* Reads the file of scores, and sets job->from to its name and hash. Returns 0 or an exit code. */
static int read_lines(struct score_job *job) {
    const char *path = job->request->file, *name = name_in_path(path);
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_error error = {VP_OK, -1, "", ""};
    char *text = NULL, digits[65], limit[160];
    size_t bytes = 0;
    int code = 0;
    vp_result result = is_folder(path)
                           ? vp_error_set(&error, VP_ERR_READ, -1, path, "is a folder; expected lines of JSON")
                           : vp_file_read(path, SIZE_MAX / 4, &text, &bytes, &error);
    if (result != VP_OK) return complain_result(EXIT_INPUT, path, result, &error);
    sha256_text(text, bytes, digits);
    snprintf(job->from, sizeof job->from, "%.200s sha256:%s", name, digits);
    int64_t number = 1;
    for (const char *line = text, *end; line < text + bytes && !code; line = end + 1, number++) {
        end = memchr(line, '\n', (size_t)(text + bytes - line));
        if (!end) end = text + bytes;
        if (strspn(line, " \t\r") >= (size_t)(end - line)) continue;
        if ((size_t)(end - line) > LINE_BYTES_MOST)
            code = complain(EXIT_INPUT, "%s: %s", path,
                            line_limit_text(limit, sizeof limit, number, (uint64_t)(end - line)));
        else if (parse_json(&parsed, line, (size_t)(end - line), &error) != VP_OK
                 || !node_is(&parsed.json, 0, VP_JSON_OBJECT))
            code = complain(EXIT_INPUT, "%s: line %lld: expected a JSON object {\"id\": .., \"score\": ..}", path,
                            (long long)number);
        else code = read_line(job, &parsed.json, number);
    }
    FREE_ALL(parsed.nodes, text);
    return code || job->line_count ? code : complain(EXIT_INPUT, "%s: the file contains no lines", path);
}

/* ---- ids to rows */
struct key_range { const struct score_key *keys; size_t count; };
static struct key_range find_keys(const struct score_key *keys, size_t count, uint64_t id) {
    size_t low = 0, high = count, end;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (keys[middle].id < id) low = middle + 1; else high = middle;
    }
    for (end = low; end < count && keys[end].id == id; end++) {}
    return (struct key_range){keys + low, end - low};
}
static struct key_range own_of(const struct score_job *job, const struct score_line *line) {
    return find_keys(job->own, line->is_sample_id ? 0 : job->own_count, line->id);
}
static struct key_range sample_of(const struct score_job *job, const struct score_line *line) {
    return find_keys(job->sample, job->row_count, line->id);
}
/* An id may be a sample's own id and the sample_id of another one. Then all ids must have one meaning: sets *are_own to
 * 1 if each can be an own id, otherwise to 0 if each can be a sample_id. Returns 0 or an exit code. */
static int settle_meaning(const struct score_job *job, int *are_own) {
    const struct score_line *both = NULL;
    int only_own = 0, only_sample = 0;
    for (size_t i = 0; i < job->line_count; i++) {
        const struct key_range own = own_of(job, &job->lines[i]), sample = sample_of(job, &job->lines[i]);
        if (job->lines[i].is_sample_id) continue;
        only_own |= own.count && !sample.count;
        only_sample |= !own.count && sample.count;
        if (own.count && sample.count && own.keys[0].row != sample.keys[0].row && !both) both = &job->lines[i];
    }
    *are_own = !only_sample || only_own;
    return !both || !only_own || !only_sample
               ? 0
               : complain(EXIT_INPUT, "%s: line %lld: %.80s is the id of one sample and the sample_id of another, and "
                                      "other lines have ids of both kinds: write \"sample_id\" instead of \"id\" where "
                                      "that is meant", job->request->file, (long long)both->number, both->name);
}
/* Gives a line's score to its rows. Returns 0 or an exit code. */
static int match_line(struct score_job *job, size_t index, int are_own) {
    struct score_line *line = &job->lines[index];
    struct key_range found = own_of(job, line);
    const struct result_file *files = job->results.files, *first = NULL;
    if (!found.count || (!are_own && sample_of(job, line).count)) found = sample_of(job, line);
    for (size_t i = 0; i < found.count; i++) {
        struct score_row *row = &job->rows[found.keys[i].row];
        if (!row->has_answer || (line->file != SIZE_MAX && row->file != line->file)) continue;
        if (first && strcmp(first->dataset_name, files[row->file].dataset_name))
            return complain(EXIT_INPUT, "%s: line %lld: %.80s is in the data sets %.60s and %.60s: \"config\" in the "
                                        "line limits it to one result file", job->request->file,
                            (long long)line->number, line->name, first->dataset_name, files[row->file].dataset_name);
        first = &files[row->file];
        if (row->line != SIZE_MAX) line->is_repeated = row->is_double = 1;
        row->line = index;
        if (line->row_count++ && line->answer != row->answer) line->has_other_answers = 1;
        line->answer = row->answer;
    }
    return 0;
}
static void add_name(struct some_names *names, const char *name) {
    if (names->count++ < NAMED_MOST) text_list_copy(&names->first, name);
}
/* Warns of ids or samples, with the first ones by name. */
static void tell(const struct score_job *job, const char *what, const struct some_names *names) {
    struct text_buffer text = {NULL, 0, 0};
    if (!names->count) return;
    for (size_t i = 0; i < names->first.count; i++)
        text_add_format(&text, "%s%.80s", i ? ", " : "", names->first.items[i]);
    complain(0, "%s: %s: %zu (%s%s)", job->request->file, what, names->count, text.data,
             names->count > names->first.count ? ", .." : "");
    free(text.data);
}
static int match_lines(struct score_job *job) {
    size_t apart = 0;
    int are_own, code = settle_meaning(job, &are_own);
    for (size_t i = 0; i < job->line_count && !code; i++) {
        const struct score_line *line = &job->lines[i];
        if ((code = match_line(job, i, are_own)) != 0) break;
        if (!line->row_count) add_name(&job->unknown, line->name);
        if (line->is_repeated) add_name(&job->repeated, line->name);
        apart += line->has_other_answers;
    }
    if (code) return code;
    tell(job, "ids that match no answered sample", &job->unknown);
    tell(job, "ids with several scores, so their samples get none", &job->repeated);
    if (apart)
        complain(0, "%s: %zu line%s without \"config\" score%s samples that configurations answered differently; each "
                    "configuration gets that score", job->request->file, apart, plural_s((int64_t)apart),
                 apart == 1 ? "s" : "");
    return 0;
}

/* ---- new text of a result file */
struct score_summary { char config[CONFIG_BYTES]; size_t scored, missing; vp_estimate accuracy; };
/* A replaced part of a text: `bytes` bytes from `start` become the new ones. */
struct splice { size_t start, bytes, text_start, text_bytes, order; };
struct splices { struct splice *items; size_t count, capacity; struct text_buffer text; };
static int compare_splices(const void *left_item, const void *right_item) {
    const struct splice *left = (const struct splice *)left_item, *right = (const struct splice *)right_item;
    if (left->start != right->start) return left->start < right->start ? -1 : 1;
    return (left->order > right->order) - (left->order < right->order);
}
/* Replaces the value of a member. If the object lacks it and it is not null, it is inserted after the member `before`,
 * with the same white space, or as the first one. */
static void set_member(struct splices *splices, const vp_json *json, uint32_t object, const char *before,
                       const char *key, const char *value, size_t bytes) {
    const uint32_t node = vp_json_get(json, object, key),
                   after = before ? vp_json_get(json, object, before) : VP_JSON_NONE;
    struct splice splice = {.text_start = splices->text.bytes, .order = splices->count};
    if (node == VP_JSON_NONE && bytes == 4 && !memcmp(value, "null", 4)) return;
    if (node != VP_JSON_NONE) {
        const size_t quotes = node_is(json, node, VP_JSON_STRING);
        splice.start = (size_t)json->nodes[node].start - quotes;
        splice.bytes = (size_t)json->nodes[node].bytes + 2 * quotes;
        text_add(&splices->text, value, bytes);
    } else if (after != VP_JSON_NONE) { /* a member's key is the node before its value */
        const char *end = json->text + json->nodes[after - 1].start - 1, *gap = end;
        while (strchr(" \t\r\n", gap[-1])) gap--;
        splice.start =
            (size_t)(json->nodes[after].start + json->nodes[after].bytes) + node_is(json, after, VP_JSON_STRING);
        text_add_format(&splices->text, ",%.*s\"%s\": %.*s", (int)(end - gap), gap, key, (int)bytes, value);
    } else {
        splice.start = (size_t)json->nodes[object].start + 1;
        text_add_format(&splices->text, "\"%s\": %.*s%s", key, (int)bytes, value,
                        json->nodes[object].count ? ", " : "");
    }
    splice.text_bytes = splices->text.bytes - splice.text_start;
    if (splices->count == splices->capacity) {
        splices->capacity = splices->capacity * 2 + 256;
        splices->items = resize(splices->items, splices->capacity, sizeof *splices->items);
    }
    splices->items[splices->count++] = splice;
}
static void set_text(struct splices *splices, const vp_json *json, uint32_t object, const char *before, const char *key,
                     const char *text) {
    struct text_buffer value = {NULL, 0, 0};
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, &value, 0);
    if (text) json_lossy(&writer, text); else vp_json_null(&writer);
    vp_json_finish(&writer);
    set_member(splices, json, object, before, key, value.data, value.bytes);
    free(value.data);
}
/* The head's members about accuracy, by the table of their keys. */
static void set_head(struct splices *splices, const struct score_job *job, const vp_json *json, const double *scores,
                     size_t count, struct score_summary *summary) {
    struct result_accuracy kept, result;
    struct text_buffer text = {NULL, 0, 0};
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_json_writer writer;
    const double spread = count ? vp_statistics_std(scores, count) : (double)NAN;
    char *before = NULL;
    fields_read(json, 0, &RESULT_ACCURACY, &kept);
    summary->accuracy = mean_score(scores, count);
    result = kept;
    result.accuracy = summary->accuracy.value;
    result.accuracy_std = spread;
    result.accuracy_metric = job->request->name;
    result.accuracy_from = job->from;
    result.accuracy_count = (int64_t)count;
    result.accuracy_reason = NULL;
    result.accuracy_standard_error = count > 1 ? spread / sqrt((double)count - 1) : (double)NAN;
    result.accuracy_interval = (struct field_range){summary->accuracy.low, summary->accuracy.high};
    if (result.num_unparsed > 0) result.num_unparsed = 0;
    vp_json_writer_init_sink(&writer, text_sink, &text, 0);
    vp_json_begin_object(&writer);
    fields_put(&writer, &RESULT_ACCURACY, &result);
    vp_json_end_object(&writer);
    if (vp_json_finish(&writer) == VP_OK && parse_json(&parsed, text.data, text.bytes, NULL) == VP_OK)
        for (uint32_t i = 1; i < parsed.json.nodes[0].end; i = parsed.json.nodes[i + 1].end) {
            const vp_json_node *value = &parsed.json.nodes[i + 1];
            const size_t quotes = value->type == VP_JSON_STRING;
            char *key = node_text(&parsed.json, i);
            set_member(splices, json, 0, before, key, parsed.json.text + value->start - quotes,
                       (size_t)value->bytes + 2 * quotes);
            free(before);
            before = key;
        }
    free(before);
    fields_free(&RESULT_ACCURACY, &kept);
    FREE_ALL(parsed.nodes, text.data);
}
/* Makes the new text of a file. Returns 0 or an exit code. */
static int rewrite(struct score_job *job, size_t index, struct score_summary *summary, struct text_buffer *out) {
    const struct result_file *file = &job->results.files[index];
    struct splices splices = {0};
    double *scores = zeroed(job->first[index + 1] - job->first[index], sizeof *scores);
    size_t score_count = 0;
    struct open_result open;
    char reason[400], number[40], name[CONFIG_BYTES + 40], config[CONFIG_BYTES];
    size_t at = job->first[index], done = 0;
    int code = open_result(&open, file->path);
    if (code) {
        free(scores);
        return code;
    }
    const vp_json *json = &open.parsed.json;
    if (json->nodes[open.rows].count != job->first[index + 1] - at) {
        open_result_free(&open);
        free(scores);
        return complain(EXIT_INPUT, "%s: the file has changed", file->path);
    }
    for (uint32_t node = open.rows + 1; node < json->nodes[open.rows].end; node = json->nodes[node].end, at++) {
        const struct score_row *row = &job->rows[at];
        const int is_scored = row->line != SIZE_MAX && !row->is_double;
        if (!row->has_answer) {
            set_member(&splices, json, node, NULL, "accuracy", "null", 4);
            continue;
        }
        if (is_scored) {
            scores[score_count++] = job->lines[row->line].score;
            number[vp_number_format(job->lines[row->line].score, number)] = 0;
        } else {
            summary->missing++;
            const vp_json_node *id = &json->nodes[vp_json_get(json, node, "sample_id")];
            snprintf(name, sizeof name, "sample %.*s of %s", (int)(id->bytes < 40 ? id->bytes : 40),
                     json->text + id->start, config_name(file->path, config));
            add_name(&job->missing, name);
        }
        snprintf(reason, sizeof reason, "%.*s has %s", (int)strcspn(job->from, " "), job->from,
                 row->is_double ? "several scores for this id" : "no score for this sample");
        set_member(&splices, json, node, NULL, "accuracy", is_scored ? number : "null", is_scored ? strlen(number) : 4);
        set_text(&splices, json, node, "accuracy", "accuracy_reason", is_scored ? NULL : reason);
        if (vp_json_get(json, node, "unparsed") != VP_JSON_NONE)
            set_member(&splices, json, node, NULL, "unparsed", "false", 5);
    }
    set_head(&splices, job, json, scores, score_count, summary);
    summary->scored = score_count;
    if (splices.count) qsort(splices.items, splices.count, sizeof *splices.items, compare_splices);
    for (size_t i = 0; i < splices.count; i++) {
        const struct splice *splice = &splices.items[i];
        text_add(out, open.text + done, splice->start - done);
        text_add(out, splices.text.data + splice->text_start, splice->text_bytes);
        done = splice->start + splice->bytes;
    }
    text_add(out, open.text + done, open.bytes - done);
    FREE_ALL(splices.items, splices.text.data, scores);
    open_result_free(&open);
    return 0;
}

/* ---- all files */
#define SCORED(member) CELL(struct score_summary, member)
static const struct table_column SCORES[] = {
    {SCORED(config), "config", "configuration"}, {SCORED(scored), "scored", "scored"},
    {SCORED(missing), "missing", "missing"},
    {CELL_ESTIMATE(struct score_summary, accuracy), "accuracy", "accuracy", .range_key = "accuracy_interval"}};
static int print_scores(const struct score_job *job, const struct score_summary *files, size_t count) {
    const struct score_request *request = job->request;
    const struct table table = TABLE(SCORES, files, count, NULL, 0);
    struct document document = {0};
    if (request->is_json) {
        vp_json_writer writer;
        vp_json_writer_init_sink(&writer, file_sink, stdout, 1);
        PUT(&writer, KEY_OBJECT(NULL), KEY("accuracy_metric", request->name), KEY("accuracy_from", job->from),
            KEY("output", request->folder), KEY("lines", job->line_count), KEY("unknown", job->unknown.count),
            KEY("repeated", job->repeated.count));
        table_put(&writer, "files", &table);
        vp_json_end_object(&writer);
        return json_end(&writer);
    }
    document_add_table(&document, &table);
    document_text(&document, BLOCK_LINE, "accuracy: [low, high] is a 95 %% interval");
    return print_document(&document);
}
/* The path of the new file of a configuration, malloc'ed. */
static char *new_path(const struct score_job *job, size_t index) {
    char config[CONFIG_BYTES], name[CONFIG_BYTES + 8];
    snprintf(name, sizeof name, "%s.json", config_name(job->results.files[index].path, config));
    return join_path(job->request->folder, name);
}
static int is_scored(const struct score_job *job, size_t file) {
    for (size_t i = job->first[file]; i < job->first[file + 1]; i++)
        if (job->rows[i].line != SIZE_MAX && !job->rows[i].is_double) return 1;
    return 0;
}
/* No file is overwritten, and no two configurations have the same file. Returns 0 or an exit code. */
static int check_paths(const struct score_job *job) {
    struct text_list paths = {NULL, 0};
    int code = 0;
    for (size_t i = 0; i < job->results.count && !code; i++) {
        if (!is_scored(job, i)) continue;
        char *path = new_path(job, i);
        if (text_list_has(&paths, path))
            code = complain(EXIT_USAGE, "two result files have the same name, %s: score one folder at a time", path);
        else if (vp_path_kind(path) == VP_PATH_UNKNOWN)
            code = complain(EXIT_OUTPUT, "%s: it cannot be written: %s", path, strerror(errno));
        else if (vp_path_kind(path) != VP_PATH_NONE)
            code = complain(EXIT_USAGE, "%s exists and would be overwritten: use another -o DIR", path);
        text_list_take(&paths, path);
    }
    if (!code && !paths.count)
        code = complain(EXIT_INPUT, "%s: no sample gets a score, so nothing is written", job->request->file);
    text_list_free(&paths);
    return code;
}
static int write_files(struct score_job *job) {
    struct score_summary *files = zeroed(job->results.count, sizeof *files);
    struct text_buffer text = {NULL, 0, 0};
    size_t written = 0;
    int code = check_paths(job);
    if (!code) code = make_folder(job->request->folder);
    for (size_t i = 0; i < job->results.count && !code; i++) {
        if (!is_scored(job, i)) continue;
        char *path = new_path(job, i);
        text.bytes = 0;
        config_name(path, files[written].config);
        code = rewrite(job, i, &files[written++], &text);
        if (!code) code = file_write(path, text.data, text.bytes);
        free(path);
    }
    if (!code) {
        tell(job, "samples without a score", &job->missing);
        if (written < job->results.count)
            complain(0, "%s: no score for %zu of %zu result files, which are not written", job->request->file,
                     job->results.count - written, job->results.count);
        code = print_scores(job, files, written);
    }
    FREE_ALL(files, text.data);
    return code;
}
int scores_apply(const struct score_request *request) {
    struct score_job job = {.request = request};
    int code = results_read(&job.results, request->operands, request->operand_count);
    if (!code) code = read_rows(&job);
    if (!code) code = read_lines(&job);
    if (!code) code = match_lines(&job);
    if (!code) code = write_files(&job);
    for (size_t i = 0; i < job.line_count; i++) free(job.lines[i].name);
    FREE_ALL(job.lines, job.rows, job.first, job.own, job.sample);
    text_list_free(&job.unknown.first);
    text_list_free(&job.repeated.first);
    text_list_free(&job.missing.first);
    results_free(&job.results);
    return code;
}
