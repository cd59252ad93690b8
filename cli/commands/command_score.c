/* command_score.c: scores answers from a file or stdin; needs no model. Each line of JSON is printed again with its
 * score. score/score_rules.c and score/score_captions.c do the work. */
#include "base/console.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "score/score_captions.h"
#include "score/score_rules.h"
#include "score/scoring.h"
#include "vlmprof.h"

#include <stdlib.h>
#include <string.h>

static const struct option_spec SCORE_OPTIONS[] = {
    OPTION_GROUP("scoring"),
    {"metric", TEXT, "M", NULL, 0, 0, NULL,
     "scoring rule: vqa_seed, vqa_official, em, anls, mc, mmmu, cider ..; an unknown one lists all",
     .is_required = 1},
    {"clean", CHOICE, "HOW", "rule", 0, 0, "rule none last frequent run",
     "cleaning of predictions: the rule's own (captions: built-in tokenizer), none, the last line, the most "
     "frequent line, or as in a sweep"},
    OPTION_LINE_MAX,
    OPTION_GROUP("output"),
    OPTION_JSON_LINES,
    OPTIONS_OF_ALL,
};

/* Scores captions. The text is one object {"sets": [...]}, one array of images or of sets, or lines of either. Returns
 * 0 or an exit code. */
static int score_captions(struct score_job *job, int metric) {
    const char *clean = text_of(job->options, "clean");
    struct scoring scoring = {0};
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_error error = {VP_OK, -1, "", ""};
    uint32_t list = VP_JSON_NONE;
    int code = 0;
    if (strcmp(clean, "rule") && strcmp(clean, "none"))
        return complain(
            EXIT_USAGE,
            "--clean: captions take \"rule\" (built-in tokenizer) or \"none\" (words between white space)");
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
                        plural_s((int64_t)job->bad_lines),
                        job->bad_lines == 1 ? "is not an object" : "are not objects",
                        job->bad_lines == 1 ? "its row" : "their rows");
    scoring_free(&scoring);
    free(parsed.nodes);
    return code;
}

static int run_command(const struct options *options) {
    const struct score_rule *rule;
    struct score_job job = {.options = options, .name = text_of(options, "metric")};
    if ((rule = score_rule_find(job.name)) == NULL) return unknown_metric(job.name, METRICS);
    int code = score_read(&job);
    if (!code) code = is_corpus(rule) ? score_captions(&job, rule->metric) : score_rows(&job, rule);
    tally_free(&job.tally);
    FREE_ALL(job.text, (void *)job.lines, job.line_bytes, job.line_numbers);
    return code;
}

const struct command command_score = {
    "score",
    "--metric M [FILE.jsonl]",
    "score answers by a rule, one JSON object per line, from a file or stdin",
    "vlmprof score --metric anls answers.jsonl   # lines like {\"prediction\": \"a cat\", \"references\": [\"cat\", "
    "\"a cat\"]}",
    1,
    COMMAND_OPTIONS(SCORE_OPTIONS),
    NULL,
    run_command};
