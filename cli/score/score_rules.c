/* score_rules.c: the rules of score: rows in, rows out.
 * Metrics of the library's table; those of a whole corpus of captions stand in score_captions.c. */
#include "score/score_rules.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "vlmprof_file.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *more_room(scoring *s) { return reserve(&s->more, scoring_room(s), 1); }
/* A text through a rule of the library. */
static void put_ruled(vp_json_writer *w, const char *key, scoring *s, const char *text, vp_result (*rule)(const char *, char *, size_t, size_t *)) {
    size_t room = strlen(text) * 2 + 64;
    char *out = resize(NULL, room, 1);
    if (key) vp_json_key(w, key);
    if (rule(text, out, room, NULL) == VP_OK) json_lossy(w, out); else vp_json_null(w);
    free(out);
    (void)s;
}
static void put_ruled_references(vp_json_writer *w, const char *key, scoring *s, vp_result (*rule)(const char *, char *, size_t, size_t *)) {
    vp_json_key(w, key);
    vp_json_begin_array(w);
    for (size_t i = 0; i < s->sample.reference_count; i++) put_ruled(w, NULL, s, s->sample.references[i], rule);
    vp_json_end_array(w);
}
/* The same rule with another cleaning, or another rule: one number. */
static void put_other_score(vp_json_writer *w, const char *key, scoring *s, vp_score_metric metric, vp_score_cleaning cleaning) {
    vp_score_outcome other;
    buffer kept = s->scratch;
    s->scratch = s->more; /* the first outcome's texts stay */
    put_double(w, key, scoring_run(s, metric, cleaning, &other) == VP_OK ? other.score : (double)NAN);
    s->more = s->scratch;
    s->scratch = kept;
}
static void put_each(vp_json_writer *w, scoring *s, const char *prediction,
                     vp_result (*rule)(const char *, const char *const *, size_t, char *, size_t, double *)) {
    vp_json_key(w, "each");
    vp_json_begin_array(w);
    for (size_t i = 0; i < s->sample.reference_count; i++) {
        double score = (double)NAN;
        if (rule(prediction, s->sample.references + i, 1, more_room(s), scoring_room(s), &score) != VP_OK) score = (double)NAN;
        json_double_or_null(w, score);
    }
    vp_json_end_array(w);
}
static void put_index(vp_json_writer *w, const char *key, int32_t index) { if (index >= 0) put_int(w, key, index); else put_null(w, key); }

static void details_vqa_seed(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)j;
    put_ruled(w, "prediction_processed", s, o->cleaned, vp_score_vqa_normalise);
    if (s->sample.is_plain_reference || !s->sample.references) return;
    put_ruled_references(w, "references_processed", s, vp_score_vqa_normalise);
    int64_t matches = 0;
    for (size_t i = 0; i < s->sample.reference_count; i++) {
        double one = 0;
        if (vp_score_vqa_seed(o->cleaned, s->sample.references + i, 1, more_room(s), scoring_room(s), &one) == VP_OK) matches += one > 0;
    }
    put_int(w, "matches", matches);
}
static void details_official(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    int identical = 1;
    char *first = resize(NULL, s->text_bytes + 1, 1), *other = resize(NULL, s->text_bytes + 1, 1);
    char text[400];
    (void)j;
    for (size_t i = 1; i < s->sample.reference_count && identical; i++)
        identical = vp_score_vqa_strip(s->sample.references[0], first, s->text_bytes + 1, NULL) == VP_OK
            && vp_score_vqa_strip(s->sample.references[i], other, s->text_bytes + 1, NULL) == VP_OK && !strcmp(first, other);
    free(first);
    free(other);
    put_bool(w, "all_references_identical", identical);
    put_ruled_references(w, "references_compared", s, identical ? vp_score_vqa_strip : vp_score_vqa_normalise_official);
    snprintf(text, sizeof text, "%.2f", 100 * o->score); /* correctly rounded, as Python's round */
    put_double(w, "percent_2_decimals", isnan(o->score) ? o->score : strtod(text, NULL));
}
static void details_em(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    size_t room = strlen(s->sample.prediction) + 1;
    char *cleaned = resize(NULL, room, 1);
    double score = (double)NAN;
    (void)j;
    put_text(w, "cleaned", o->cleaned);
    if (s->sample.references && vp_score_clean_frequent(s->sample.prediction, more_room(s), scoring_room(s), cleaned, room, NULL) == VP_OK)
        vp_score_em_unstripped(cleaned, s->sample.references, s->sample.reference_count, more_room(s), scoring_room(s), &score);
    put_double(w, "score_vqa_eval", score);
    free(cleaned);
}
static void details_anls(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)j;
    put_each(w, s, o->cleaned, vp_score_anls);
}
static void details_relaxed(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)j;
    put_each(w, s, o->cleaned, vp_score_relaxed);
}
static void details_jaccard(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)j;
    (void)o;
    put_other_score(w, "score_compute_accuracy", s, VP_SCORE_CAPTION_JACCARD, VP_SCORE_CLEAN_LAST);
}
static void details_mc(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)s;
    (void)j;
    put_text(w, "cleaned", o->cleaned);
    put_index(w, "predicted_index", o->option_index);
}
static void details_vqa_eval(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)s;
    (void)j;
    put_text(w, "cleaned_vqa_eval", o->cleaned);
    put_index(w, "predicted_index", o->option_index);
}
/* letters as labels are counted with the boxes' kind, other labels with both */
static void details_ai2d(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    int letters = node_is(j, vp_json_get(j, 0, "abc_label"), VP_JSON_TRUE);
    int clear = node_is(j, vp_json_get(j, 0, "has_transparent_box"), VP_JSON_TRUE);
    details_vqa_eval(w, s, j, o);
    put_double(w, "score_transparent", letters && !clear ? (double)NAN : o->score);
    put_double(w, "score_opaque", letters && clear ? (double)NAN : o->score);
    put_double(w, "score_mc", o->score);
}
static void details_real_world(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)j;
    if (s->sample.question_type && !strcmp(s->sample.question_type, "multiple_choice")) {
        put_index(w, "predicted_index", o->option_index);
        return;
    }
    put_ruled(w, "prediction_processed", s, o->cleaned, vp_score_vqa_normalise);
    if (s->sample.reference_count) put_ruled(w, "reference_processed", s, s->sample.references[0], vp_score_vqa_normalise);
}
static void details_mmmu_choice(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    char letter[2] = {(char)('A' + (o->option_index < 0 ? 0 : o->option_index)), 0};
    (void)s;
    (void)j;
    put_bool(w, "unparsed", o->is_unparsed);
    put_text(w, "parsed", o->option_index < 0 ? NULL : letter);
}
static void details_mmmu_open(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    vp_score_mmmu_answer a;
    (void)j;
    if (vp_score_mmmu_parse(o->cleaned, more_room(s), scoring_room(s), &a) != VP_OK) return;
    vp_json_key(w, "parsed_strings");
    vp_json_begin_array(w);
    for (size_t i = 0; i < a.strings.count; i++) json_lossy(w, a.strings.texts[i]);
    vp_json_end_array(w);
    vp_json_key(w, "parsed_numbers");
    vp_json_begin_array(w);
    for (size_t i = 0; i < a.number_count; i++) {
        if (isfinite(a.numbers[i])) vp_json_double(w, a.numbers[i]);
        else vp_json_string(w, isnan(a.numbers[i]) ? "nan" : a.numbers[i] < 0 ? "-inf" : "inf");
    }
    vp_json_end_array(w);
}
static void details_mmmu(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    int choice = o->option_index >= 0 || o->is_unparsed;
    (choice ? details_mmmu_choice : details_mmmu_open)(w, s, j, o);
}
static void details_vista(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)s;
    (void)j;
    put_text(w, "normalised", o->parsed);
}
static const score_rule SCORE_RULES[] = {
    {"vqa_seed", VP_SCORE_VQA_SEED, details_vqa_seed},
    {"vqa_official", VP_SCORE_VQA_OFFICIAL, details_official},
    {"em", VP_SCORE_EM, details_em},
    {"anls", VP_SCORE_ANLS, details_anls},
    {"relaxed", VP_SCORE_RELAXED, details_relaxed},
    {"mc", VP_SCORE_MC, details_mc},
    {"mc_ai2d", VP_SCORE_MC_TEXT, details_ai2d},
    {"mmmu", VP_SCORE_MMMU, details_mmmu},
    {"mmmu_multiple_choice", VP_SCORE_MMMU_CHOICE, details_mmmu_choice},
    {"mmmu_open", VP_SCORE_MMMU_OPEN, details_mmmu_open},
    {"a_okvqa", VP_SCORE_A_OKVQA, NULL},
    {"real_world_qa", VP_SCORE_REAL_WORLD_QA, details_real_world},
    {"seed_bench", VP_SCORE_SEED_BENCH, details_vqa_eval},
    {"math_vista_local", VP_SCORE_MATH_VISTA, details_vista},
    {"caption_jaccard", VP_SCORE_CAPTION_JACCARD, details_jaccard},
    {"captions", RULE_CAPTIONS, NULL},
    {"cider", RULE_CIDER_D, NULL},
    {"bleu", RULE_BLEU_4, NULL},
    {"bleu_1", RULE_BLEU_1, NULL},
    {"bleu_2", RULE_BLEU_1 - 1, NULL},
    {"bleu_3", RULE_BLEU_1 - 2, NULL},
    {"bleu_4", RULE_BLEU_4, NULL},
    {"rouge_l", RULE_ROUGE_L, NULL},
};

enum { SCORE_RULE_COUNT = sizeof SCORE_RULES / sizeof SCORE_RULES[0] };

int is_corpus(const score_rule *rule) { return rule->metric < 0; }
const score_rule *score_rule_find(const char *name) {
    vp_score_metric metric;
    int known = vp_score_metric_find(name, &metric) == VP_OK;
    char plain[32] = ""; /* papers write CIDEr-D, BLEU-4, ROUGE-L */
    for (size_t i = 0; name[i] && i + 1 < sizeof plain; i++) plain[i] = name[i] == '-' ? '_' : (char)tolower((unsigned char)name[i]);
    if (!strcmp(plain, "cider_d")) return score_rule_find("cider");
    for (int i = 0; i < SCORE_RULE_COUNT; i++) {
        const score_rule *rule = &SCORE_RULES[i];
        if (!strcmp(rule->name, is_corpus(rule) ? plain : name) || (known && rule->metric == (int)metric)) return rule;
    }
    return NULL;
}
int unknown_metric(const char *name, int wanted) {
    char names[512] = "";
    size_t used = 0;
    const score_rule *rule = score_rule_find(name);
    if (wanted == METRICS_OF_ROWS && rule && is_corpus(rule))
        return complain(EXIT_USAGE, "--metric: %s is of a whole corpus: sweep with caption_jaccard, then vlmprof rescore RESULT.json --metric %s",
                        rule->name, rule->name);
    for (int i = 0; i < SCORE_RULE_COUNT && used < sizeof names; i++) {
        rule = &SCORE_RULES[i];
        if (wanted == METRICS || !is_corpus(rule))
            used += (size_t)snprintf(names + used, sizeof names - used, " %s", rule->name);
    }
    return complain(EXIT_USAGE, "--metric: \"%.60s\" is none of:%s", name, names);
}

/* One row of the input -> one row of the output. */
static void score_row(score_job *job, const score_rule *rule, scoring *s, parsed *p, size_t line, vp_json_writer *w) {
    static const vp_score_cleaning cleanings[] = {VP_SCORE_CLEAN_NONE, VP_SCORE_CLEAN_LAST, VP_SCORE_CLEAN_FREQUENT};
    const char *clean = text_of(job->o, "clean"), *trouble = NULL, *prediction_key = "prediction";
    vp_score_outcome o = {(double)NAN, NULL, 0, -1, NULL, NULL};
    vp_error error = {VP_OK, -1, "", ""};
    char reason[LINE_BYTES];
    vp_result r = parse_json(p, job->lines[line], job->line_bytes[line], &error);
    scoring_clear(s);
    vp_json_begin_object(w);
    if (r != VP_OK || !node_is(&p->json, 0, VP_JSON_OBJECT)) {
        snprintf(reason, sizeof reason, "line %lld: %s (byte %lld)", (long long)job->line_numbers[line],
                 r == VP_OK ? "want one JSON object" : error.text, (long long)(error.offset < 0 ? 0 : error.offset));
        trouble = reason;
        job->bad_lines++;
    } else {
        uint32_t id = vp_json_get(&p->json, 0, "id");
        if (id != VP_JSON_NONE) { vp_json_key(w, "id"); json_node(w, &p->json, id); }
        if (!has_value(&p->json, 0, "prediction")) prediction_key = has_value(&p->json, 0, "text") ? "text" : "pred";
        s->sample.prediction = scoring_own(s, node_text(&p->json, vp_json_get(&p->json, 0, prediction_key)));
        trouble = scoring_read(s, rule->metric, &p->json, 0);
        if (!s->sample.prediction) trouble = "the row has no prediction that is a text";
    }
    if (!trouble && rule->metric >= 0) {
        const vp_score_metric_info *info = vp_score_metric_of((vp_score_metric)rule->metric);
        vp_score_cleaning cleaning = info->own_cleaning;
        for (int i = 0; i < 3; i++) if (!strcmp(clean, i == 0 ? "none" : i == 1 ? "last" : "frequent")) cleaning = cleanings[i];
        if (!strcmp(clean, "run")) cleaning = info->run_cleaning;
        r = scoring_run(s, (vp_score_metric)rule->metric, cleaning, &o);
        if (r != VP_OK) trouble = vp_result_text(r);
    }
    if (!trouble && rule->details) rule->details(w, s, &p->json, &o);
    if (!trouble) trouble = o.reason;
    put_double(w, "score", o.score);
    if (trouble) put_text(w, "reason", trouble);
    vp_json_end_object(w);
    tally_add(&job->t, o.score, o.is_unparsed, s->sample.prediction && !(o.cleaned ? o.cleaned : s->sample.prediction)[0]);
}

int score_put_line(vp_json_writer *w, text_buffer *line, const char *source) {
    vp_result r = vp_json_finish(w);
    if (r != VP_OK) return complain(EXIT_WORK, "%s: a row cannot be written as JSON: %s", source, vp_result_text(r));
    text_add(line, "\n", 1);
    return fwrite(line->data, 1, line->bytes, stdout) == line->bytes ? 0 : EXIT_OUTPUT; /* main says why */
}

static void score_add_line(score_job *job, const char *line, size_t bytes, int64_t number) {
    if (job->line_count == job->line_capacity) {
        job->line_capacity = job->line_capacity * 2 + 1024;
        job->lines = resize(job->lines, job->line_capacity, sizeof *job->lines);
        job->line_bytes = resize(job->line_bytes, job->line_capacity, sizeof *job->line_bytes);
        job->line_numbers = resize(job->line_numbers, job->line_capacity, sizeof *job->line_numbers);
    }
    job->lines[job->line_count] = line;
    job->line_bytes[job->line_count] = bytes;
    job->line_numbers[job->line_count++] = number;
}
/* lines end at \n alone: texts may hold other separators */
static void score_lines(score_job *job) {
    char *line = job->text, *end;
    if (!job->text_bytes) return; /* then there is no text either */
    for (int64_t number = 1; line < job->text + job->text_bytes; line = end + 1, number++) {
        end = memchr(line, '\n', (size_t)(job->text + job->text_bytes - line));
        if (!end) end = job->text + job->text_bytes;
        size_t bytes = (size_t)(end - line), blank = 0;
        while (blank < bytes && strchr(" \t\r", line[blank]) && line[blank]) blank++;
        if (blank < bytes) score_add_line(job, line, bytes, number);
    }
}
void score_list(score_job *job, const vp_json *j, uint32_t list) {
    job->line_count = 0;
    for (uint32_t i = list + 1, k = 1; i < j->nodes[list].end; i = j->nodes[i].end, k++) {
        size_t quotes = node_is(j, i, VP_JSON_STRING);
        score_add_line(job, j->text + j->nodes[i].start - quotes, (size_t)j->nodes[i].bytes + 2 * quotes, (int64_t)k);
    }
}

int score_read(score_job *job) {
    const char *path = job->o->operand_count ? job->o->operands[0] : "-";
    vp_error error = {VP_OK, -1, "", ""};
    text_buffer t = {NULL, 0, 0};
    char piece[65536];
    size_t bytes;
    vp_result r;
    job->source = strcmp(path, "-") ? path : "stdin";
    if (strcmp(path, "-")) {
        r = is_folder(path) ? vp_fail(&error, VP_ERR_READ, -1, path, "is a folder; want a JSONL file")
            : vp_file_read(path, SIZE_MAX / 4, &job->text, &job->text_bytes, &error);
        if (r != VP_OK) return complain_result(EXIT_INPUT, path, r, &error);
    } else {
        while ((bytes = fread(piece, 1, sizeof piece, stdin)) > 0) text_add(&t, piece, bytes);
        if (ferror(stdin)) { free(t.data); return complain(EXIT_INPUT, "stdin cannot be read: %s", strerror(errno)); }
        job->text = t.data;
        job->text_bytes = t.bytes;
    }
    score_lines(job);
    return job->line_count ? 0 : complain(EXIT_INPUT, "%s: there is no line in it", job->source);
}

int score_rows(score_job *job, const score_rule *rule) {
    scoring s;
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    text_buffer line = {NULL, 0, 0};
    vp_json_writer w;
    int code = 0;
    memset(&s, 0, sizeof s);
    job->t.is_binary = rule->metric >= 0 && vp_score_metric_of((vp_score_metric)rule->metric)->is_binary;
    for (size_t i = 0; i < job->line_count && !code; i++) {
        line.bytes = 0;
        vp_json_writer_init_sink(&w, text_sink, &line, 0);
        score_row(job, rule, &s, &p, i, &w);
        code = score_put_line(&w, &line, job->source);
    }
    if (!code) tally_print(&job->t, job->name);
    if (!code && job->bad_lines)
        code = complain(EXIT_INPUT, "%s: %d lines are no JSON objects: their rows say why", job->source, job->bad_lines);
    scoring_free(&s);
    free(p.nodes);
    free(line.data);
    return code;
}
