/* score_rules.c: the rules of the score command, which turn a line of JSON into a line with its score.
 * The metrics are the library's; those of a whole corpus of captions are in score_captions.c. A rule may write further
 * members next to the score (details_...). */
#include "score/score_rules.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/options.h"
#include "vlmprof_file.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

/* Scratch memory for the members next to the score. */
static char *more_room(struct scoring *scoring) { return reserve(&scoring->more, scoring_room(scoring), 1); }
/* Writes a text after a cleaning rule of the library. Inside an array, `key` is NULL. */
static void put_ruled(vp_json_writer *writer, const char *key, const char *text,
                      vp_result (*rule)(const char *, char *, size_t, size_t *)) {
    size_t room = strlen(text) * 2 + 64;
    char *out = resize(NULL, room, 1);
    if (key) vp_json_key(writer, key);
    if (rule(text, out, room, NULL) == VP_OK) json_lossy(writer, out); else vp_json_null(writer);
    free(out);
}
static void put_ruled_references(vp_json_writer *writer, const char *key, const struct scoring *scoring,
                                 vp_result (*rule)(const char *, char *, size_t, size_t *)) {
    PUT(writer, KEY_ARRAY(key));
    for (size_t i = 0; i < scoring->sample.reference_count; i++)
        put_ruled(writer, NULL, scoring->sample.references[i], rule);
    vp_json_end_array(writer);
}
/* Writes the score by another rule or with another cleaning. */
static void put_other_score(vp_json_writer *writer, const char *key, struct scoring *scoring, vp_score_metric metric,
                            vp_score_cleaning cleaning) {
    vp_score_outcome other;
    struct buffer kept = scoring->scratch;
    scoring->scratch = scoring->more; /* to keep the texts of the first outcome valid */
    put_double(writer, key, scoring_run(scoring, metric, cleaning, &other) == VP_OK ? other.score : (double)NAN);
    scoring->more = scoring->scratch;
    scoring->scratch = kept;
}
/* Writes the score against each single reference. */
static void put_each(vp_json_writer *writer, struct scoring *scoring, const char *prediction,
                     vp_result (*rule)(const char *, const char *const *, size_t, char *, size_t, double *)) {
    PUT(writer, KEY_ARRAY("each"));
    for (size_t i = 0; i < scoring->sample.reference_count; i++) {
        double score = (double)NAN;
        if (rule(prediction, scoring->sample.references + i, 1, more_room(scoring), scoring_room(scoring), &score)
            != VP_OK)
            score = (double)NAN;
        json_double_or_null(writer, score);
    }
    vp_json_end_array(writer);
}
static void put_index(vp_json_writer *writer, const char *key, int32_t index) {
    if (index >= 0) put_int(writer, key, index);
    else put_null(writer, key);
}

/* A scored row, and the open object for the members next to its score. */
struct shown {
    vp_json_writer *writer;
    struct scoring *scoring;
    const vp_score_sample *sample;
    const vp_json *json;
    const vp_score_outcome *outcome;
};
static void details_vqa_seed(const struct shown *row) {
    put_ruled(row->writer, "prediction_processed", row->outcome->cleaned, vp_score_vqa_normalise);
    if (row->sample->is_plain_reference || !row->sample->references) return;
    put_ruled_references(row->writer, "references_processed", row->scoring, vp_score_vqa_normalise);
    int64_t matches = 0;
    for (size_t i = 0; i < row->sample->reference_count; i++) {
        double one = 0;
        if (vp_score_vqa_seed(row->outcome->cleaned, row->sample->references + i, 1, more_room(row->scoring),
                              scoring_room(row->scoring), &one)
            == VP_OK)
            matches += one > 0;
    }
    put_int(row->writer, "matches", matches);
}
static void details_official(const struct shown *row) {
    int identical = 1;
    const size_t room = row->scoring->text_bytes + 1;
    char *first = resize(NULL, room, 1), *other = resize(NULL, room, 1);
    char text[400];
    for (size_t i = 1; i < row->sample->reference_count && identical; i++)
        identical = vp_score_vqa_strip(row->sample->references[0], first, room, NULL) == VP_OK
                    && vp_score_vqa_strip(row->sample->references[i], other, room, NULL) == VP_OK
                    && !strcmp(first, other);
    FREE_ALL(first, other);
    put_bool(row->writer, "all_references_identical", identical);
    put_ruled_references(row->writer, "references_compared", row->scoring,
                         identical ? vp_score_vqa_strip : vp_score_vqa_normalise_official);
    snprintf(text, sizeof text, "%.2f", 100 * row->outcome->score); /* rounds like Python's round */
    PUT(row->writer, KEY("percent_2_decimals", isnan(row->outcome->score) ? row->outcome->score : strtod(text, NULL)));
}
static void details_em(const struct shown *row) {
    size_t room = strlen(row->sample->prediction) + 1;
    char *cleaned = resize(NULL, room, 1);
    double score = (double)NAN;
    put_text(row->writer, "cleaned", row->outcome->cleaned);
    if (row->sample->references
        && vp_score_clean_frequent(row->sample->prediction, more_room(row->scoring), scoring_room(row->scoring),
                                   cleaned, room, NULL)
               == VP_OK)
        vp_score_em_unstripped(cleaned, row->sample->references, row->sample->reference_count, more_room(row->scoring),
                               scoring_room(row->scoring), &score);
    put_double(row->writer, "score_vqa_eval", score);
    free(cleaned);
}
static void details_anls(const struct shown *row) {
    put_each(row->writer, row->scoring, row->outcome->cleaned, vp_score_anls);
}
static void details_relaxed(const struct shown *row) {
    put_each(row->writer, row->scoring, row->outcome->cleaned, vp_score_relaxed);
}
static void details_jaccard(const struct shown *row) {
    put_other_score(row->writer, "score_compute_accuracy", row->scoring, VP_SCORE_CAPTION_JACCARD, VP_SCORE_CLEAN_LAST);
}
static void details_mc(const struct shown *row) {
    put_text(row->writer, "cleaned", row->outcome->cleaned);
    put_index(row->writer, "predicted_index", row->outcome->option_index);
}
static void details_vqa_eval(const struct shown *row) {
    put_text(row->writer, "cleaned_vqa_eval", row->outcome->cleaned);
    put_index(row->writer, "predicted_index", row->outcome->option_index);
}
/* A question with letters as labels counts for its kind of box, transparent or opaque; any other counts for both. */
static void details_ai2d(const struct shown *row) {
    int letters = node_is(row->json, vp_json_get(row->json, 0, "abc_label"), VP_JSON_TRUE);
    int clear = node_is(row->json, vp_json_get(row->json, 0, "has_transparent_box"), VP_JSON_TRUE);
    details_vqa_eval(row);
    PUT(row->writer, KEY("score_transparent", letters && !clear ? (double)NAN : row->outcome->score),
        KEY("score_opaque", letters && clear ? (double)NAN : row->outcome->score),
        KEY("score_mc", row->outcome->score));
}
static void details_real_world(const struct shown *row) {
    if (row->sample->question_type && !strcmp(row->sample->question_type, "multiple_choice")) {
        put_index(row->writer, "predicted_index", row->outcome->option_index);
        return;
    }
    put_ruled(row->writer, "prediction_processed", row->outcome->cleaned, vp_score_vqa_normalise);
    if (row->sample->reference_count)
        put_ruled(row->writer, "reference_processed", row->sample->references[0], vp_score_vqa_normalise);
}
static void details_mmmu_choice(const struct shown *row) {
    char letter[2] = {(char)('A' + (row->outcome->option_index < 0 ? 0 : row->outcome->option_index)), 0};
    PUT(row->writer, KEY_BOOL("unparsed", row->outcome->is_unparsed),
        KEY("parsed", row->outcome->option_index < 0 ? NULL : letter));
}
static void details_mmmu_open(const struct shown *row) {
    vp_score_mmmu_answer answer;
    if (vp_score_mmmu_parse(row->outcome->cleaned, more_room(row->scoring), scoring_room(row->scoring), &answer)
        != VP_OK)
        return;
    PUT(row->writer, KEY_ARRAY("parsed_strings"));
    for (size_t i = 0; i < answer.strings.count; i++) json_lossy(row->writer, answer.strings.texts[i]);
    PUT(row->writer, END_ARRAY, KEY_ARRAY("parsed_numbers"));
    for (size_t i = 0; i < answer.number_count; i++) {
        if (isfinite(answer.numbers[i])) vp_json_double(row->writer, answer.numbers[i]);
        else vp_json_string(row->writer, isnan(answer.numbers[i]) ? "nan" : answer.numbers[i] < 0 ? "-inf" : "inf");
    }
    vp_json_end_array(row->writer);
}
static void details_mmmu(const struct shown *row) {
    int choice = row->outcome->option_index >= 0 || row->outcome->is_unparsed;
    (choice ? details_mmmu_choice : details_mmmu_open)(row);
}
/* The details that rules of VP_SCORE_METRICS write. */
typedef void score_details(const struct shown *row);
static score_details *const SCORE_DETAILS[VP_SCORE_METRIC_COUNT] = {[VP_SCORE_VQA_SEED] = details_vqa_seed,
                                                                    [VP_SCORE_VQA_OFFICIAL] = details_official,
                                                                    [VP_SCORE_EM] = details_em,
                                                                    [VP_SCORE_ANLS] = details_anls,
                                                                    [VP_SCORE_RELAXED] = details_relaxed,
                                                                    [VP_SCORE_MC] = details_mc,
                                                                    [VP_SCORE_MC_TEXT] = details_ai2d,
                                                                    [VP_SCORE_MMMU] = details_mmmu,
                                                                    [VP_SCORE_MMMU_CHOICE] = details_mmmu_choice,
                                                                    [VP_SCORE_MMMU_OPEN] = details_mmmu_open,
                                                                    [VP_SCORE_REAL_WORLD_QA] = details_real_world,
                                                                    [VP_SCORE_SEED_BENCH] = details_vqa_eval,
                                                                    [VP_SCORE_CAPTION_JACCARD] = details_jaccard};
/* The rules of --metric: first those of single answers, then those of a whole corpus, which are negative and computed
 * in score_captions.c. */
static const struct score_rule SCORE_RULES[] = {
#define RULE_OF_METRIC(metric, name, ...) {name, VP_SCORE_##metric},
    VP_SCORE_METRICS(RULE_OF_METRIC)
#undef RULE_OF_METRIC
        {"captions", RULE_CAPTIONS},
    {"cider", RULE_CIDER_D},
};

enum { SCORE_RULE_COUNT = sizeof SCORE_RULES / sizeof SCORE_RULES[0] };

int is_corpus(const struct score_rule *rule) { return rule->metric < 0; }
const struct score_rule *score_rule_find(const char *name) {
    vp_score_metric metric;
    int known = vp_score_metric_find(name, &metric) == VP_OK;
    char plain[32] = ""; /* papers write CIDEr-D */
    for (size_t i = 0; name[i] && i + 1 < sizeof plain; i++)
        plain[i] = name[i] == '-' ? '_' : (char)tolower((unsigned char)name[i]);
    if (!strcmp(plain, "cider_d")) return score_rule_find("cider");
    for (int i = 0; i < SCORE_RULE_COUNT; i++) {
        const struct score_rule *rule = &SCORE_RULES[i];
        if (!strcmp(rule->name, is_corpus(rule) ? plain : name) || (known && rule->metric == (int)metric)) return rule;
    }
    return NULL;
}
int unknown_metric(const char *name, int wanted) {
    char names[1024] = "";
    size_t used = 0;
    const struct score_rule *rule = score_rule_find(name);
    if (wanted == METRICS_OF_ROWS && rule && is_corpus(rule))
        return complain(
            EXIT_USAGE,
            "--metric: %s scores a whole corpus: sweep with caption_jaccard, then vlmprof score --predictions "
            "RESULT.json | vlmprof score --metric %s",
            rule->name, rule->name);
    for (int i = 0; i < SCORE_RULE_COUNT && used < sizeof names; i++) {
        rule = &SCORE_RULES[i];
        if (wanted == METRICS || !is_corpus(rule))
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? " " : "", rule->name);
    }
    return complain_word("metric", "rule", name, names);
}

static vp_score_cleaning cleaning_of(const char *clean, const vp_score_metric_info *info) {
    if (!strcmp(clean, "none")) return VP_SCORE_CLEAN_NONE;
    if (!strcmp(clean, "last")) return VP_SCORE_CLEAN_LAST;
    if (!strcmp(clean, "frequent")) return VP_SCORE_CLEAN_FREQUENT;
    return strcmp(clean, "run") ? info->own_cleaning : info->run_cleaning;
}
static void put_id(vp_json_writer *writer, const vp_json *json) {
    uint32_t id = vp_json_get(json, 0, "id");
    if (id == VP_JSON_NONE) return;
    vp_json_key(writer, "id");
    json_node(writer, json, id);
}
/* Reads the sample of a row, and writes the row's id. Returns NULL or the error in the row. */
static const char *read_row(struct scoring *scoring, int metric, const vp_json *json, vp_json_writer *writer) {
    const char *prediction_key = "prediction", *trouble;
    put_id(writer, json);
    if (!has_value(json, 0, "prediction")) prediction_key = has_value(json, 0, "text") ? "text" : "pred";
    scoring->sample.prediction = scoring_own(scoring, node_text(json, vp_json_get(json, 0, prediction_key)));
    trouble = scoring_read(scoring, metric, json, 0);
    return scoring->sample.prediction ? trouble : "the row's prediction is not a string";
}
/* Scores one line of the input and writes its row. For an invalid line, the row has a reason instead of a score. */
static void score_row(struct score_job *job, const struct score_rule *rule, struct scoring *scoring,
                      struct parsed *parsed, size_t line, vp_json_writer *writer) {
    const char *trouble = NULL;
    vp_score_outcome outcome = {(double)NAN, NULL, 0, -1, NULL, 0};
    vp_error error = {VP_OK, -1, "", ""};
    char reason[LINE_BYTES];
    vp_result result = parse_json(parsed, job->lines[line].text, job->lines[line].bytes, &error);
    scoring_clear(scoring);
    vp_json_begin_object(writer);
    if (result != VP_OK || !node_is(&parsed->json, 0, VP_JSON_OBJECT)) {
        snprintf(reason, sizeof reason, "line %lld: %s (byte %lld)", (long long)job->lines[line].number,
                 result == VP_OK ? "expected one JSON object" : error.text,
                 (long long)(error.offset < 0 ? 0 : error.offset));
        trouble = reason;
        job->bad_lines++;
    } else trouble = read_row(scoring, rule->metric, &parsed->json, writer);
    if (!trouble) {
        const vp_score_metric_info *info = vp_score_metric_of((vp_score_metric)rule->metric);
        vp_score_cleaning cleaning = cleaning_of(job->clean, info);
        result = scoring_run(scoring, (vp_score_metric)rule->metric, cleaning, &outcome);
        if (result != VP_OK) trouble = vp_result_text(result);
    }
    if (!trouble && SCORE_DETAILS[rule->metric])
        SCORE_DETAILS[rule->metric](&(struct shown){writer, scoring, &scoring->sample, &parsed->json, &outcome});
    if (!trouble) trouble = outcome.reason;
    put_double(writer, "score", outcome.score);
    if (trouble) put_text(writer, "reason", trouble);
    vp_json_end_object(writer);
    job->tally.nearest_count += outcome.is_nearest;
    job->few_count += has_few_answers(scoring, (vp_score_metric)rule->metric);
    job->empty_count += scoring->sample.references && !scoring->sample.reference_count;
    job->whole_count += rule->metric == VP_SCORE_VQA_SEED && scoring->sample.is_plain_reference;
    int is_empty = scoring->sample.prediction && !(outcome.cleaned ? outcome.cleaned : scoring->sample.prediction)[0];
    tally_add(&job->tally, outcome.score, outcome.is_unparsed, is_empty);
}

int score_put_line(vp_json_writer *writer, struct text_buffer *line, const char *source) {
    vp_result result = vp_json_finish(writer);
    if (result != VP_OK)
        return complain(EXIT_WORK, "%s: a row cannot be written as JSON: %s", source, vp_result_text(result));
    text_add(line, "\n", 1);
    /* main reports errors of stdout */
    return fwrite(line->data, 1, line->bytes, stdout) == line->bytes ? 0 : EXIT_OUTPUT;
}

void summary_begin(vp_json_writer *writer, struct text_buffer *line) {
    vp_json_writer_init_sink(writer, text_sink, line, 0);
    PUT(writer, KEY_OBJECT(NULL), KEY_OBJECT("summary"));
}
int summary_end(vp_json_writer *writer, struct text_buffer *line, const char *source) {
    PUT(writer, END_OBJECT, END_OBJECT);
    return score_put_line(writer, line, source);
}

static void score_add_line(struct score_job *job, const char *line, size_t bytes, int64_t number) {
    *ADDED(job->lines, job->line_count) = (struct score_line){line, bytes, number};
}
/* Finds the lines of the text. Only \n ends a line, because texts may contain other separators. */
static void score_lines(struct score_job *job) {
    char *line = job->text, *end;
    if (!job->text_bytes) return; /* the text may be NULL */
    for (int64_t number = 1; line < job->text + job->text_bytes; line = end + 1, number++) {
        end = memchr(line, '\n', (size_t)(job->text + job->text_bytes - line));
        if (!end) end = job->text + job->text_bytes;
        size_t bytes = (size_t)(end - line), blank = 0;
        while (blank < bytes && strchr(" \t\r", line[blank]) && line[blank]) blank++;
        if (blank < bytes) score_add_line(job, line, bytes, number);
    }
}
void score_list(struct score_job *job, const vp_json *json, uint32_t list) {
    job->line_count = 0;
    for (uint32_t i = list + 1, k = 1; i < json->nodes[list].end; i = json->nodes[i].end, k++) {
        size_t quotes = node_is(json, i, VP_JSON_STRING);
        score_add_line(job, json->text + json->nodes[i].start - quotes, (size_t)json->nodes[i].bytes + 2 * quotes,
                       (int64_t)k);
    }
}

/* Returns 1 if the text is one JSON object with the "schema" of a result file. */
static int is_result_file(const struct score_job *job) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    if (!job->text_bytes || job->text[0] != '{' || parse_json(&parsed, job->text, job->text_bytes, NULL) != VP_OK) {
        free(parsed.nodes);
        return 0;
    }
    char *schema = node_text(&parsed.json, vp_json_get(&parsed.json, 0, "schema"));
    int is_one = schema && !strncmp(schema, "vlmprof-", 8);
    FREE_ALL(schema, parsed.nodes);
    return is_one;
}
int score_read(struct score_job *job) {
    const char *path = job->path;
    vp_error error = {VP_OK, -1, "", ""};
    struct text_buffer text = {NULL, 0, 0};
    char piece[65536];
    size_t bytes;
    vp_result result;
    job->source = strcmp(path, "-") ? path : "stdin";
    if (strcmp(path, "-")) {
        result = is_folder(path) ? vp_error_set(&error, VP_ERR_READ, -1, path, "is a folder; expected a JSONL file")
                                 : vp_stream_read(path, SIZE_MAX / 4, &job->text, &job->text_bytes, &error);
        if (result != VP_OK) return complain_result(EXIT_INPUT, path, result, &error);
    } else {
        while ((bytes = fread(piece, 1, sizeof piece, stdin)) > 0) text_add(&text, piece, bytes);
        if (ferror(stdin)) {
            free(text.data);
            return complain(EXIT_INPUT, "stdin cannot be read: %s", strerror(errno));
        }
        job->text = text.data;
        job->text_bytes = text.bytes;
    }
    if (is_result_file(job))
        return complain(EXIT_INPUT, "%s is a result file: vlmprof score --predictions prints its answers as lines",
                        job->source);
    score_lines(job);
    return job->line_count ? 0 : complain(EXIT_INPUT, "%s: the file has no lines", job->source);
}

int score_check_lines(const struct score_job *job) {
    char text[160];
    for (size_t i = 0; i < job->line_count; i++)
        if (job->lines[i].bytes > LINE_BYTES_MOST)
            return complain(EXIT_INPUT, "%s: %s", job->source,
                            line_limit_text(text, sizeof text, job->lines[i].number, job->lines[i].bytes));
    return 0;
}

/* Returns 0, or an exit code after a message with the fields of the first row if no row has a prediction. */
static int check_fields(const struct score_job *job, struct parsed *parsed) {
    static const char *const keys[] = {"prediction", "text", "pred"};
    struct text_buffer fields = {NULL, 0, 0};
    int is_there = 0;
    for (size_t i = 0; i < job->line_count && !is_there; i++) {
        if (parse_json(parsed, job->lines[i].text, job->lines[i].bytes, NULL) != VP_OK
            || !node_is(&parsed->json, 0, VP_JSON_OBJECT))
            continue;
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            is_there |= vp_json_get(&parsed->json, 0, keys[k]) != VP_JSON_NONE;
        if (!fields.bytes) add_fields(&parsed->json, 0, &fields);
    }
    int code = is_there || !fields.bytes
                   ? 0
                   : complain(EXIT_INPUT, "%s: no row has a \"prediction\" to score; the fields are %s", job->source,
                              fields.data);
    free(fields.data);
    return code;
}
int score_rows(struct score_job *job, const struct score_rule *rule) {
    struct scoring scoring = {0};
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    struct text_buffer line = {NULL, 0, 0};
    vp_json_writer writer;
    int code = score_check_lines(job);
    if (job->text_bytes && job->text[0] == '[' && parse_json(&parsed, job->text, job->text_bytes, NULL) == VP_OK)
        score_list(job, &parsed.json, 0);
    if (!code) code = check_fields(job, &parsed);
    job->tally.keeps_values = 1;
    job->tally.is_binary = vp_score_metric_of((vp_score_metric)rule->metric)->is_binary;
    for (size_t i = 0; !code && i < job->line_count; i++) {
        line.bytes = 0;
        vp_json_writer_init_sink(&writer, text_sink, &line, 0);
        score_row(job, rule, &scoring, &parsed, i, &writer);
        code = score_put_line(&writer, &line, job->source);
    }
    if (!code && job->json) {
        line.bytes = 0;
        summary_begin(&writer, &line);
        tally_put(&writer, &job->tally, job->name);
        code = summary_end(&writer, &line, job->source);
    }
    if (!code) {
        char few[200];
        tally_print(&job->tally, job->name);
        if (job->empty_count)
            print_note("vlmprof: %zu row%s an empty list of references: each scores 0 in the mean\n", job->empty_count,
                       job->empty_count == 1 ? " has" : "s have");
        if (job->few_count)
            print_note("vlmprof: %s\n",
                       few_answers_text((vp_score_metric)rule->metric, job->few_count, few, sizeof few));
        if (job->whole_count)
            print_note("vlmprof: %zu row%s a string, not a list of references: vqa_seed compares the whole string, so "
                       "an exact match scores 1; in a list, [\"TEXT\"], it is one person's answer and scores 1/3\n",
                       job->whole_count, job->whole_count == 1 ? " has" : "s have");
    }
    if (!code && job->bad_lines)
        code = complain(
            EXIT_INPUT, "%s: %d line%s %s why", job->source, job->bad_lines, plural_s((int64_t)job->bad_lines),
            job->bad_lines == 1 ? "is not a JSON object; its row shows" : "are not JSON objects; their rows show");
    scoring_free(&scoring);
    FREE_ALL(parsed.nodes, line.data);
    return code;
}
