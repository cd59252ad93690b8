/* command_rescore.c: scores of the answers in a result file, made again. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
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

static const option_spec RESCORE_OPTIONS[] = {
    {"metric", TEXT, "M", NULL, 0, 0, NULL, "scoring rule (default: the one that the file names)"},
    OPTION_HELP,
};

typedef struct rescore_job { vp_score_metric metric; vp_score_cleaning cleaning; int compares, differ_count; tally t; } rescore_job;

/* A string up to its first \u0000, as a sweep scores it; NULL: no string. */
static char *node_text_cut(const vp_json *j, uint32_t node) {
    char *out;
    if (!node_is(j, node, VP_JSON_STRING)) return NULL;
    out = resize(NULL, (size_t)j->nodes[node].bytes + 1, 1);
    if (vp_json_text(j, node, out, (size_t)j->nodes[node].bytes + 1, NULL) != VP_OK) { free(out); return NULL; }
    return out;
}

static void rescore_row(rescore_job *job, scoring *s, const vp_json *j, uint32_t row, vp_json_writer *w) {
    vp_score_outcome o = {(double)NAN, NULL, 0, -1, NULL, NULL};
    uint32_t metadata = vp_json_get(j, row, "metadata"), status = vp_json_get(j, row, "status"), id = vp_json_get(j, row, "sample_id");
    double stored = node_number(j, vp_json_get(j, row, "accuracy")), score;
    const char *trouble = NULL;
    scoring_clear(s);
    vp_json_begin_object(w);
    vp_json_key(w, "sample_id");
    if (id != VP_JSON_NONE) json_node(w, j, id); else vp_json_null(w);
    s->sample.prediction = scoring_own(s, node_text_cut(j, vp_json_get(j, row, "pred")));
    if (status != VP_JSON_NONE && !vp_json_equals(j, status, "ok")) trouble = "the point failed: no answer";
    else if (!s->sample.prediction) trouble = "the row has no \"pred\"";
    else if (!node_is(j, metadata, VP_JSON_OBJECT)) trouble = "the row has no \"metadata\"";
    else trouble = scoring_read(s, (int)job->metric, j, metadata);
    scoring_as_run(s);
    if (!trouble && scoring_run(s, job->metric, job->cleaning, &o) != VP_OK) trouble = "the row is too large";
    if (!trouble) trouble = o.reason;
    score = o.is_unparsed ? 0 : o.score;
    put_double(w, "accuracy", score);
    put_text(w, "accuracy_reason", trouble);
    put_double(w, "accuracy_stored", stored);
    put_text(w, "pred_cleaned", o.cleaned);
    put_bool(w, "unparsed", o.is_unparsed);
    vp_json_end_object(w);
    if (job->compares && !(isnan(stored) && isnan(score)) && !(fabs(stored - score) <= 1e-12)) job->differ_count++;
    tally_add(&job->t, o.score, o.is_unparsed, o.cleaned && !o.cleaned[0]);
}

/* A corpus metric: the rows of a result file as images. */
static int rescore_captions(const vp_json *j, uint32_t rows, const score_rule *rule, const char *path) {
    int is_clean = vp_json_get(j, 0, "schema") == VP_JSON_NONE; /* as files of the experiments are */
    scoring s;
    captions c;
    int code;
    memset(&s, 0, sizeof s);
    memset(&c, 0, sizeof c);
    for (uint32_t i = rows + 1; i < j->nodes[rows].end; i = j->nodes[i].end) {
        uint32_t metadata = vp_json_get(j, i, "metadata"), status = vp_json_get(j, i, "status");
        caption_row *row = caption_add_row(&c, j, vp_json_get(j, i, "sample_id"), "sample_id");
        char *candidate = node_text_cut(j, vp_json_get(j, i, "pred"));
        scoring_clear(&s);
        scoring_own(&s, candidate);
        if (candidate && !is_clean) {
            row->cleaned = resize(NULL, strlen(candidate) + 1, 1);
            if (vp_score_clean(candidate, row->cleaned, strlen(candidate) + 1, NULL) != VP_OK) row->cleaned[0] = 0; /* never: no text grows */
            candidate = row->cleaned;
        }
        if (status != VP_JSON_NONE && !vp_json_equals(j, status, "ok")) row->trouble = "the point failed: no answer";
        else if (!node_is(j, metadata, VP_JSON_OBJECT)) row->trouble = "the row has no \"metadata\"";
        else caption_add(&c, row, &s, j, metadata, candidate, 0);
    }
    code = captions_print(&c, rule->metric, rule->name, path);
    captions_free(&c);
    scoring_free(&s);
    return code;
}

/* --metric, else the file's own, else its data set's; does the file say that its accuracies are of the same? */
static int rescore_metric(const options *o, const vp_json *j, rescore_job *job) {
    char *stored = node_text(j, vp_json_get(j, 0, "accuracy_metric")), *dataset = node_text(j, vp_json_get(j, 0, "dataset_name"));
    vp_score_metric own = VP_SCORE_VQA_SEED;
    int known = stored && vp_score_metric_find(stored, &own) == VP_OK, code = 0;
    if (!known) vp_score_metric_for_dataset(dataset ? dataset : "", &own);
    job->metric = own;
    if (given(o, "metric") && vp_score_metric_find(text_of(o, "metric"), &job->metric) != VP_OK) code = unknown_metric(text_of(o, "metric"), METRICS);
    job->compares = job->metric == own && (known || !given(o, "metric"));
    /* files of the experiments hold answers that are cleaned already */
    job->cleaning = vp_json_get(j, 0, "schema") == VP_JSON_NONE ? VP_SCORE_CLEAN_NONE : vp_score_metric_of(job->metric)->run_cleaning;
    job->t.is_binary = vp_score_metric_of(job->metric)->is_binary;
    free(stored);
    free(dataset);
    return code;
}

static int run_command(const options *o) {
    const char *path = o->operand_count ? o->operands[0] : NULL;
    vp_error error = {VP_OK, -1, "", ""};
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    text_buffer out = {NULL, 0, 0};
    const score_rule *rule = given(o, "metric") ? score_rule_find(text_of(o, "metric")) : NULL;
    rescore_job job;
    scoring s;
    vp_json_writer w;
    char *text = NULL;
    size_t bytes = 0;
    uint32_t rows;
    int code = 0;
    vp_result r;
    if (!path) return complain(EXIT_USAGE, "rescore needs a RESULT.json of a sweep");
    memset(&job, 0, sizeof job);
    memset(&s, 0, sizeof s);
    r = is_folder(path) ? vp_fail(&error, VP_ERR_READ, -1, path, "is a folder; want a result file")
        : vp_file_read(path, SIZE_MAX / 4, &text, &bytes, &error);
    if (r == VP_OK) r = parse_json(&p, text, bytes, &error);
    if (r != VP_OK) {
        free(text);
        free(p.nodes);
        return complain_result(EXIT_INPUT, path, r, &error);
    }
    rows = vp_json_get(&p.json, 0, "per_sample_results");
    if (!node_is(&p.json, rows, VP_JSON_ARRAY)) code = complain(EXIT_INPUT, "%s has no \"per_sample_results\": want a result file of a sweep", path);
    if (!code && rule && is_corpus(rule)) code = rescore_captions(&p.json, rows, rule, path);
    else if (!code) code = rescore_metric(o, &p.json, &job);
    for (uint32_t i = rows + 1; !code && !(rule && is_corpus(rule)) && i < p.json.nodes[rows].end; i = p.json.nodes[i].end) {
        vp_json_writer_init_sink(&w, text_sink, &out, 0);
        rescore_row(&job, &s, &p.json, i, &w);
        if (vp_json_finish(&w) != VP_OK) code = complain(EXIT_WORK, "%s: a row cannot be written as JSON: %s", path, vp_result_text(w.result));
        text_add(&out, "\n", 1);
    }
    if (!code && out.bytes) fwrite(out.data, 1, out.bytes, stdout); /* main looks at stdout */
    if (!code && !(rule && is_corpus(rule))) tally_print(&job.t, vp_score_metric_of(job.metric)->name);
    if (!code && job.differ_count)
        code = complain(EXIT_WORK, "%s: %d of %lld stored accuracies differ from those of %s", path, job.differ_count, (long long)job.t.row_count,
                        vp_score_metric_of(job.metric)->name);
    scoring_free(&s);
    free(p.nodes);
    free(out.data);
    free(text);
    return code;
}

const command command_rescore = {
    "rescore", "RESULT.json",
    "score the answers of a sweep's result file again; exit 1 when its accuracies differ",
    "vlmprof rescore results/questions_imgsizetier-low_crops3_topk1_blocks2.json --metric vqa_official",
    1, RESCORE_OPTIONS, sizeof RESCORE_OPTIONS / sizeof *RESCORE_OPTIONS, NULL, run_command};
