/* score_rules.h: the rules of score: rows in, rows out. */
#ifndef VLMPROF_CLI_SCORE_RULES_H
#define VLMPROF_CLI_SCORE_RULES_H
#include "base/memory.h"
#include "base/options.h"
#include "score/scoring.h"
#include "vlmprof.h"
#include "vlmprof_score.h"

typedef struct score_job {
    const options *o;
    const char *name, *source;  /* the metric as it was asked for; the file, or "stdin" */
    char *text; size_t text_bytes;
    const char **lines; size_t *line_bytes, line_count, line_capacity; /* blank lines left out; for messages, their numbers */
    int64_t *line_numbers;
    tally t;
    int bad_lines, by_words;
} score_job;

/* members of the open object that a rule shows beside the score */
typedef void (*score_details)(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o);

/* instead of a vp_score_metric: the number of a corpus of captions that is the score */
enum { RULE_CIDER_D = -1, RULE_BLEU_1 = -2, RULE_BLEU_4 = -5, RULE_ROUGE_L = -6, RULE_CAPTIONS = -7 /* CIDEr-D, and the words */ };

typedef struct score_rule {
    const char *name;
    int metric;
    score_details details;
} score_rule;

int is_corpus(const score_rule *rule);
const score_rule *score_rule_find(const char *name);

enum { METRICS, METRICS_OF_ROWS };

int unknown_metric(const char *name, int wanted);

/* 0 or an exit code */
int score_put_line(vp_json_writer *w, text_buffer *line, const char *source);

/* The elements of one JSON array instead. */
void score_list(score_job *job, const vp_json *j, uint32_t list);

/* FILE, or stdin */
int score_read(score_job *job);

int score_rows(score_job *job, const score_rule *rule);

#endif
