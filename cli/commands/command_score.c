/* command_score.c: scores answers from a file or stdin, prints the answers in result files for other scorers, and puts
 * their scores into result files; needs no model. score/ and results/result_scores.c do the work. */
#include "base/console.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "results/result_read.h"
#include "score/score_captions.h"
#include "score/score_rules.h"
#include "score/scoring.h"

static const struct option_spec SCORE_OPTIONS[] = {
    OPTION_GROUP("scoring"),
    {"metric", TEXT, "M", NULL, 0, 0, NULL,
     "scoring rule: vqa_seed, vqa_official, em, anls, mc, mmmu, cider, ...; pass an unknown name to list them all"},
    {"clean", CHOICE, "HOW", "rule", 0, 0, "rule none last frequent run",
     "how predictions are cleaned: rule (the rule's own way; captions: built-in tokenizer), none, last (the last "
     "line), frequent (the most frequent line), run (as in a sweep)"},
    RULED_GROUP("scores from other scorers, for result files or a sweep's folder", .excludes = "metric clean"),
    {"predictions", FLAG, NULL, NULL, 0, 0, NULL,
     "print the answers, one JSON object per line: id, sample_id, config, prediction, and the sample's record",
     .excludes = "scores metric clean"},
    {"scores", TEXT, "FILE", NULL, 0, 0, NULL,
     "file with lines {\"id\": ID, \"score\": 0..1}, where ID is the record's id or a sample_id; \"config\" limits a "
     "line to one result file; these scores become the accuracy"},
    {"name", TEXT, "NAME", "scores", 0, 0, NULL, "name for these scores, used as accuracy_metric", .needs = "scores"},
    {"output", TEXT, "DIR", NULL, 0, 0, NULL, "folder for the new result files; none is overwritten",
     .needs = "scores"},
    OPTION_GROUP("output"),
    OPTION_JSON_LINES,
    OPTIONS_OF_ALL,
};

/* Scores captions. The text is one object {"sets": [...]}, one array of images or of sets, or lines of either. Returns
 * 0 or an exit code. */
static int score_captions(struct score_job *job, int metric) {
    const char *clean = job->clean;
    struct scoring scoring = {0};
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_error error = {VP_OK, -1, "", ""};
    uint32_t list = VP_JSON_NONE;
    int code = 0;
    if (strcmp(clean, "rule") && strcmp(clean, "none"))
        return complain(EXIT_USAGE,
                        "--clean: captions take \"rule\" (built-in tokenizer) or \"none\" (split at whitespace)");
    job->by_words = !strcmp(clean, "none");
    if (parse_json(&parsed, job->text, job->text_bytes, &error) == VP_OK) {
        if (node_is(&parsed.json, 0, VP_JSON_ARRAY)) list = 0;
        else if (node_is(&parsed.json, 0, VP_JSON_OBJECT)) list = vp_json_get(&parsed.json, 0, "sets");
    }
    if (node_is(&parsed.json, list, VP_JSON_ARRAY)) score_list(job, &parsed.json, list);
    code = score_check_lines(job);
    if (!code) code = caption_lines(job, &scoring, &parsed, metric);
    if (!code && job->bad_lines)
        code = complain(EXIT_INPUT, "%s: %d line%s %s like the first; see %s", job->source, job->bad_lines,
                        plural_s((int64_t)job->bad_lines), job->bad_lines == 1 ? "is not an object" : "are not objects",
                        job->bad_lines == 1 ? "its row" : "their rows");
    scoring_free(&scoring);
    free(parsed.nodes);
    return code;
}

/* --predictions and --scores. */
static int handle_results(const struct options *options) {
    const struct score_request request = {
        .file = text_of(options, "scores"), .name = text_of(options, "name"), .folder = text_of(options, "output"),
        .operands = options->operands, .operand_count = options->operand_count,
        .is_json = is_given(options, "json")};
    if (!options->operand_count)
        return complain(EXIT_USAGE, "score --%s needs result files or a sweep's folder",
                        request.file ? "scores" : "predictions");
    if (!request.file) return predictions_print(options->operands, options->operand_count);
    if (!request.folder) return complain(EXIT_USAGE, "score --scores needs -o DIR for the new result files");
    if (!request.name[0]) return complain(EXIT_USAGE, "--name must not be empty");
    return scores_apply(&request);
}
static int run_command(const struct options *options) {
    const struct score_rule *rule;
    struct score_job job = {.name = text_of(options, "metric"), .clean = text_of(options, "clean"),
                            .path = options->operand_count ? options->operands[0] : "-",
                            .json = is_given(options, "json")};
    if (is_given(options, "predictions") || is_given(options, "scores")) return handle_results(options);
    if (!job.name) return complain(EXIT_USAGE, "score needs --metric M, --predictions, or --scores FILE");
    if (options->operand_count > 1) return complain(EXIT_USAGE, "score --metric reads one file, or stdin");
    if ((rule = score_rule_find(job.name)) == NULL) return unknown_metric(job.name, METRICS);
    int code = score_read(&job);
    if (!code) code = is_corpus(rule) ? score_captions(&job, rule->metric) : score_rows(&job, rule);
    tally_free(&job.tally);
    FREE_ALL(job.text, job.lines);
    return code;
}

const struct command command_score = {
    "score",
    "--metric M [FILE.jsonl] | --predictions RESULTS... | RESULTS... --scores FILE -o DIR",
    "score answers by a rule, or put another scorer's scores into result files",
    "vlmprof score --metric anls answers.jsonl   # lines like {\"prediction\": \"a cat\", \"references\": [\"cat\", "
    "\"a cat\"]}\n"
    "  vlmprof score --predictions results >answers.jsonl\n"
    "  vlmprof score results --scores scores.jsonl --name llm_judge -o scored",
    SIZE_MAX,
    COMMAND_OPTIONS(SCORE_OPTIONS),
    NULL,
    run_command};
