/* score_rules.h: the rules of score: rows in, rows out. */
#ifndef VLMPROF_CLI_SCORE_RULES_H
#define VLMPROF_CLI_SCORE_RULES_H
#include "base/memory.h"
#include "base/options.h"
#include "score/scoring.h"
#include "vlmprof.h"
#include "vlmprof_score.h"

struct score_job {
    const struct options *options;
    const char *name, *source;  /* the metric as it was asked for; the file, or "stdin" */
    char *text; size_t text_bytes;
    /* blank lines left out; for messages, their numbers */
    const char **lines; size_t *line_bytes, line_count, line_capacity;
    int64_t *line_numbers;
    struct tally tally;
    int bad_lines, by_words;
};

/* members of the open object that a rule shows beside the score */
typedef void (*score_details)(vp_json_writer *writer, struct scoring *scoring, const vp_json *json,
                              vp_score_outcome *outcome);

/* instead of a vp_score_metric: the number of a corpus of captions that is the score */
enum { RULE_CIDER_D = -1, RULE_BLEU_1 = -2, RULE_BLEU_4 = -5, RULE_ROUGE_L = -6, RULE_CAPTIONS = -7 /* CIDEr-D,
       and the words */ };

struct score_rule {
    const char *name;
    int metric;
    score_details details;
};

int is_corpus(const struct score_rule *rule);
const struct score_rule *score_rule_find(const char *name);

enum { METRICS, METRICS_OF_ROWS };

int unknown_metric(const char *name, int wanted);

/* 0 or an exit code */
int score_put_line(vp_json_writer *writer, struct text_buffer *line, const char *source);

/* The elements of one JSON array instead. */
void score_list(struct score_job *job, const vp_json *json, uint32_t list);

/* FILE, or stdin */
int score_read(struct score_job *job);

int score_rows(struct score_job *job, const struct score_rule *rule);

#endif
