/* score_rules.h: the rules of the score command.
 * Lines of JSON come in from a file or stdin; each becomes a line of JSON with its score on stdout. */
#ifndef VLMPROF_CLI_SCORE_RULES_H
#define VLMPROF_CLI_SCORE_RULES_H
#include "score/scoring.h"
#include "vlmprof_score.h"

struct score_job {
    const char *name, *source;     /* the requested metric; the file, or "stdin" */
    char *text; size_t text_bytes; /* the whole input */
    struct score_line {
        const char *text;
        size_t bytes;
        int64_t number;
    } * lines;
    size_t line_count; /* not blank ones */
    struct tally tally;
    int bad_lines;      /* number of lines that are not JSON objects */
    const char *path;   /* the file; "-" is stdin */
    const char *clean;  /* --clean */
    int json;           /* 1: end with a summary */
    int by_words;       /* 1 if captions are already words, separated by white space */
    size_t whole_count; /* rows of vqa_seed with one text instead of a list */
    size_t empty_count; /* rows with an empty list of references */
    size_t few_count;   /* rows of a VQA rule with 1 or 2 reference answers */
};

/* Metrics of a whole corpus of captions, as negative values of score_rule.metric. Both are CIDEr-D; RULE_CAPTIONS also
 * writes the words. */
enum { RULE_CIDER_D = -1, RULE_CAPTIONS = -2 };

struct score_rule {
    const char *name;
    int metric; /* a vp_score_metric, or RULE_... below 0 */
};

int is_corpus(const struct score_rule *rule);               /* 1 if the score is for a whole corpus */
const struct score_rule *score_rule_find(const char *name); /* NULL if there is no such rule */

/* Complains about a metric and lists the wanted ones: all, or all except those of a corpus. Returns an exit code. */
enum { METRICS, METRICS_OF_ROWS };
int unknown_metric(const char *name, int wanted);

/* Ends a row's JSON and prints it as a line. Returns 0 or an exit code. */
int score_put_line(vp_json_writer *writer, struct text_buffer *line, const char *source);

/* The last line of --json, {"summary": {...}}. The caller writes its members between the two calls. `line` must be
 * empty before. summary_end prints the line and returns 0 or an exit code. */
void summary_begin(vp_json_writer *writer, struct text_buffer *line);
int summary_end(vp_json_writer *writer, struct text_buffer *line, const char *source);

/* Returns 0, or EXIT_INPUT after a message if a line is too long. */
int score_check_lines(const struct score_job *job);
/* Makes the elements of a JSON array the job's lines. */
void score_list(struct score_job *job, const vp_json *json, uint32_t list);

/* Reads the operand, or stdin, and finds its lines. Returns 0 or an exit code. */
int score_read(struct score_job *job);

/* Scores the lines one by one and prints their rows, then the summary on stderr. Returns 0 or an exit code. */
int score_rows(struct score_job *job, const struct score_rule *rule);

#endif
