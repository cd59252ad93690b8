/* command_rescore.c: scores the answers in a sweep's result file again. Each of its rows becomes a line of JSON with
 * the new score and the stored one. The exit code shows whether they differ. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "score/score_answers.h"
#include "score/score_captions.h"
#include "score/score_rules.h"
#include "score/scoring.h"
#include "vlmprof.h"
#include "vlmprof_file.h"
#include "vlmprof_score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec RESCORE_OPTIONS[] = {
    OPTION_GROUP("scoring"),
    {"metric", TEXT, "M", NULL, 0, 0, NULL, "scoring rule (default: the one named in the file)"},
    OPTION_LINE_MAX,
    OPTION_GROUP("output"),
    OPTION_JSON_LINES,
    OPTIONS_OF_ALL,
};

struct rescore_job {
    vp_score_metric metric;
    vp_score_cleaning cleaning;
    int compares;     /* 1 if the stored scores use the same metric */
    int differ_count; /* rows whose stored score differs */
    struct tally tally, stored; /* sums of the new scores and of those in the file */
};

/* A malloc'ed copy of a string up to its first \u0000, as in a sweep; NULL if the node is not a string. */
static char *node_text_cut(const vp_json *json, uint32_t node) {
    if (!node_is(json, node, VP_JSON_STRING)) return NULL;
    char *out = resize(NULL, (size_t)json->nodes[node].bytes + 1, 1);
    if (vp_json_text(json, node, out, (size_t)json->nodes[node].bytes + 1, NULL) == VP_OK) return out;
    free(out);
    return NULL;
}

/* Scores one row, writes its object and compares the score with the stored one. */
static void rescore_row(struct rescore_job *job, struct scoring *scoring, const vp_json *json, uint32_t row,
                        vp_json_writer *writer) {
    vp_score_outcome outcome = {(double)NAN, NULL, 0, -1, NULL, NULL};
    uint32_t metadata = vp_json_get(json, row, "metadata"), status = vp_json_get(json, row, "status"),
             id = vp_json_get(json, row, "sample_id");
    double stored = node_number(json, vp_json_get(json, row, "accuracy")), score;
    const char *trouble = NULL;
    scoring_clear(scoring);
    vp_json_begin_object(writer);
    vp_json_key(writer, "sample_id");
    if (id != VP_JSON_NONE) json_node(writer, json, id); else vp_json_null(writer);
    scoring->sample.prediction = scoring_own(scoring, node_text_cut(json, vp_json_get(json, row, "pred")));
    if (status != VP_JSON_NONE && !vp_json_equals(json, status, "ok")) trouble = "the point failed: no answer";
    else if (!scoring->sample.prediction) trouble = "the row has no \"pred\"";
    else if (!node_is(json, metadata, VP_JSON_OBJECT)) trouble = "the row has no \"metadata\"";
    else trouble = scoring_read(scoring, (int)job->metric, json, metadata);
    scoring_as_run(scoring);
    if (!trouble && scoring_run(scoring, job->metric, job->cleaning, &outcome) != VP_OK)
        trouble = "the row is too large";
    if (!trouble) trouble = outcome.reason;
    score = outcome.is_unparsed ? 0 : outcome.score;
    PUT(writer, KEY("accuracy", score), KEY("accuracy_reason", trouble), KEY("accuracy_stored", stored),
        KEY("pred_cleaned", outcome.cleaned), KEY_BOOL("unparsed", outcome.is_unparsed), END_OBJECT);
    if (job->compares && !(isnan(stored) && isnan(score)) && !(fabs(stored - score) <= 1e-12)) job->differ_count++;
    tally_add(&job->stored, stored, 0, 0);
    job->tally.nearest_count += outcome.is_nearest;
    tally_add(&job->tally, outcome.score, outcome.is_unparsed, outcome.cleaned && !outcome.cleaned[0]);
}

/* Scores the rows by a whole-corpus metric, each row as an image. Returns 0 or an exit code. */
static int rescore_captions(const struct options *options, const vp_json *json, uint32_t rows,
                            const struct score_rule *rule, const char *path) {
    int is_clean = vp_json_get(json, 0, "schema") == VP_JSON_NONE; /* captions of the experiments are clean */
    struct scoring scoring = {0};
    int code;
    struct captions captions = {.with_summary = is_given(options, "json")};
    for (uint32_t i = rows + 1; i < json->nodes[rows].end; i = json->nodes[i].end) {
        uint32_t metadata = vp_json_get(json, i, "metadata"), status = vp_json_get(json, i, "status");
        struct caption_row *row = caption_add_row(&captions, json, vp_json_get(json, i, "sample_id"), "sample_id");
        char *candidate = node_text_cut(json, vp_json_get(json, i, "pred"));
        scoring_clear(&scoring);
        scoring_own(&scoring, candidate);
        if (candidate && !is_clean) {
            row->cleaned = resize(NULL, strlen(candidate) + 1, 1);
            /* never fails: cleaning makes no text longer */
            if (vp_score_clean(candidate, row->cleaned, strlen(candidate) + 1, NULL) != VP_OK) row->cleaned[0] = 0;
            candidate = row->cleaned;
        }
        if (status != VP_JSON_NONE && !vp_json_equals(json, status, "ok")) row->trouble = "the point failed: no answer";
        else if (!node_is(json, metadata, VP_JSON_OBJECT)) row->trouble = "the row has no \"metadata\"";
        else caption_add(&captions, row, &scoring, json, metadata, candidate, 0);
    }
    code = captions_print(&captions, rule->metric, rule->name, path);
    captions_free(&captions);
    scoring_free(&scoring);
    return code;
}

/* Chooses the metric: --metric, else the one in the file, else its data set's. Also sets the cleaning, and whether the
 * stored scores use this metric. Returns 0 or an exit code. */
static int rescore_metric(const struct options *options, const vp_json *json, struct rescore_job *job) {
    char *stored = node_text(json, vp_json_get(json, 0, "accuracy_metric")),
         *dataset = node_text(json, vp_json_get(json, 0, "dataset_name"));
    vp_score_metric own = VP_SCORE_VQA_SEED;
    int known = stored && vp_score_metric_find(stored, &own) == VP_OK, code = 0;
    if (!known) vp_score_metric_for_dataset(dataset ? dataset : "", &own);
    job->metric = own;
    if (is_given(options, "metric") && vp_score_metric_find(text_of(options, "metric"), &job->metric) != VP_OK)
        code = unknown_metric(text_of(options, "metric"), METRICS);
    job->compares = job->metric == own && (known || !is_given(options, "metric"));
    /* the answers in the experiments' files are already cleaned */
    job->cleaning = vp_json_get(json, 0, "schema") == VP_JSON_NONE ? VP_SCORE_CLEAN_NONE
                                                                   : vp_score_metric_of(job->metric)->run_cleaning;
    job->tally.is_binary = vp_score_metric_of(job->metric)->is_binary;
    job->tally.keeps_values = 1;
    FREE_ALL(stored, dataset);
    return code;
}

/* Scores the rows one by one; prints nothing unless all are valid. Returns 0 or an exit code. */
static int rescore_rows(const struct options *options, const vp_json *json, uint32_t rows, const char *path) {
    struct rescore_job job = {0};
    struct scoring scoring = {0};
    struct text_buffer out = {NULL, 0, 0};
    vp_json_writer writer;
    int code = rescore_metric(options, json, &job);
    for (uint32_t i = rows + 1; !code && i < json->nodes[rows].end; i = json->nodes[i].end) {
        vp_json_writer_init_sink(&writer, text_sink, &out, 0);
        rescore_row(&job, &scoring, json, i, &writer);
        if (vp_json_finish(&writer) != VP_OK)
            code = complain(EXIT_WORK, "%s: a row cannot be written as JSON: %s", path, vp_result_text(writer.result));
        text_add(&out, "\n", 1);
    }
    if (!code && out.bytes) fwrite(out.data, 1, out.bytes, stdout); /* main checks stdout */
    if (!code && is_given(options, "json")) {
        out.bytes = 0;
        summary_begin(&writer, &out);
        tally_put(&writer, &job.tally, vp_score_metric_of(job.metric)->name);
        put_double(&writer, "mean_stored", job.stored.scored_count ? job.stored.mean : (double)NAN);
        if (job.compares) put_int(&writer, "differ", job.differ_count); else put_null(&writer, "differ");
        code = summary_end(&writer, &out, path);
    }
    if (!code) tally_print(&job.tally, vp_score_metric_of(job.metric)->name);
    if (!code && job.differ_count)
        code = complain(EXIT_WORK, "%s: %d of %lld stored accuracies differ from those of %s", path, job.differ_count,
                        (long long)job.tally.row_count, vp_score_metric_of(job.metric)->name);
    tally_free(&job.tally);
    scoring_free(&scoring);
    free(out.data);
    return code;
}

/* Scores an answer file of lmms-eval or VLMEvalKit, as `score` does. */
static int rescore_answers(const struct options *options, const struct score_rule *rule) {
    if (!rule || is_corpus(rule))
        return complain(EXIT_USAGE, "%s is an answer file of another tool: give a rule for single answers with "
                                    "--metric M",
                        options->operands[0]);
    struct score_job job = {.options = options, .name = rule->name};
    int code = score_read(&job);
    if (!code) code = score_rows(&job, rule);
    FREE_ALL(job.text, (void *)job.lines, job.line_bytes, job.line_numbers);
    return code;
}
static int run_command(const struct options *options) {
    const char *path = options->operand_count ? options->operands[0] : NULL;
    vp_error error = {VP_OK, -1, "", ""};
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    const struct score_rule *rule = is_given(options, "metric") ? score_rule_find(text_of(options, "metric")) : NULL;
    char *text = NULL;
    size_t bytes = 0;
    int code = 0;
    if (!path) return complain(EXIT_USAGE, "rescore needs a RESULT.json of a sweep");
    vp_result result = is_folder(path) ? vp_fail(&error, VP_ERR_READ, -1, path, "is a folder; expected a result file")
        : vp_stream_read(path, SIZE_MAX / 4, &text, &bytes, &error);
    if (result == VP_OK && answers_kind(text, bytes) != ANSWERS_NONE) {
        free(text);
        return rescore_answers(options, rule);
    }
    if (result == VP_OK) result = parse_json(&parsed, text, bytes, &error);
    if (result != VP_OK) {
        FREE_ALL(text, parsed.nodes);
        return complain_result(EXIT_INPUT, path, result, &error);
    }
    uint32_t rows = vp_json_get(&parsed.json, 0, "per_sample_results");
    if (!node_is(&parsed.json, rows, VP_JSON_ARRAY))
        code = complain(EXIT_INPUT, "%s has no \"per_sample_results\": expected a result file of a sweep", path);
    if (!code && rule && is_corpus(rule)) code = rescore_captions(options, &parsed.json, rows, rule, path);
    else if (!code) code = rescore_rows(options, &parsed.json, rows, path);
    FREE_ALL(parsed.nodes, text);
    return code;
}

const struct command command_rescore = {
    "rescore", "RESULT.json",
    "score the answers in a sweep's result file again; exit 1 if its accuracies differ",
    "vlmprof rescore results/questions_imgsizetier-low_crops3_topk1_blocks2.json --metric vqa_official",
    1, COMMAND_OPTIONS(RESCORE_OPTIONS), NULL, run_command};
