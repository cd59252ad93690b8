/* score_captions.c: the rules of a whole corpus of captions: BLEU, CIDEr-D, ROUGE-L. */
#include "score/score_captions.h"

#include "base/console.h"
#include "base/memory.h"
#include "vlmprof_score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void captions_clear(captions *c) {
    for (size_t i = 0; i < c->text_count; i++) free((void *)(size_t)c->texts[i].text);
    for (size_t i = 0; i < c->row_count; i++) { free(c->rows[i].id); free(c->rows[i].reason); free(c->rows[i].cleaned); }
    c->text_count = c->row_count = c->tokenised_count = 0;
}
void captions_free(captions *c) {
    captions_clear(c);
    free(c->texts);
    free(c->rows);
}
/* Returns whether the words are another text than what was given. */
static int caption_add_text(captions *c, const char *text, int is_words) {
    size_t bytes = strlen(text), room = bytes * 6 + 1, used = bytes;
    char *own;
    if (is_words) own = copy_text(text, bytes);
    else {
        own = resize(NULL, room, 1);
        if (vp_caption_tokenise(text, bytes, own, room, &used) != VP_OK) own[used = 0] = 0; /* the room is enough for any text */
        own = resize(own, used + 1, 1);
        c->tokenised_count++;
    }
    if (c->text_count == c->text_capacity) {
        c->text_capacity = c->text_capacity * 2 + 1024;
        c->texts = resize(c->texts, c->text_capacity, sizeof *c->texts);
    }
    c->texts[c->text_count].text = own;
    c->texts[c->text_count++].bytes = used;
    return strcmp(own, text) != 0;
}
caption_row *caption_add_row(captions *c, const vp_json *j, uint32_t id, const char *id_key) {
    caption_row *row;
    if (c->row_count == c->row_capacity) {
        c->row_capacity = c->row_capacity * 2 + 256;
        c->rows = resize(c->rows, c->row_capacity, sizeof *c->rows);
    }
    row = &c->rows[c->row_count++];
    memset(row, 0, sizeof *row);
    row->first = c->text_count;
    row->id_key = id_key;
    if (id != VP_JSON_NONE) {
        text_buffer t = {NULL, 0, 0};
        vp_json_writer w;
        vp_json_writer_init_sink(&w, text_sink, &t, 0);
        json_node(&w, j, id);
        if (vp_json_finish(&w) == VP_OK) row->id = t.data; else free(t.data);
    }
    return row;
}
void caption_add(captions *c, caption_row *row, scoring *s, const vp_json *j, uint32_t object, const char *candidate, int is_words) {
    const char *trouble = NULL;
    if (is_words) {
        if (!scoring_list(s, 0, j, vp_json_get(j, object, "references_tokenised"), &s->sample.references, &s->sample.reference_count))
            trouble = "the references must be texts";
    } else trouble = scoring_read(s, VP_SCORE_CAPTION_JACCARD, j, object);
    if (!candidate) trouble = "the row has no prediction that is a text";
    if (!trouble && !s->sample.reference_count) trouble = "the row has no references to compare with";
    row->trouble = trouble;
    if (trouble) return;
    row->reference_count = s->sample.reference_count;
    row->has_words = caption_add_text(c, candidate, is_words || c->by_words) || is_words;
    for (size_t i = 0; i < row->reference_count; i++)
        if (caption_add_text(c, s->sample.references[i], is_words || c->by_words)) row->has_words = 1;
}
/* An object of an image: its texts, or those that it says are taken apart already. */
static void caption_add_object(captions *c, scoring *s, const vp_json *j, uint32_t object) {
    static const char *const keys[] = {"candidate_tokenised", "candidate", "prediction", "pred", "caption", "text"};
    int id_is_image = !has_value(j, object, "id") && has_value(j, object, "image_id"), key = 0;
    caption_row *row = caption_add_row(c, j, vp_json_get(j, object, id_is_image ? "image_id" : "id"), id_is_image ? "image_id" : "id");
    scoring_clear(s);
    if (!has_value(j, object, "references_tokenised")) key = 1;
    while (key < 5 && !has_value(j, object, keys[key])) key++;
    caption_add(c, row, s, j, object, scoring_own(s, node_text(j, vp_json_get(j, object, keys[key]))), key == 0);
}

static double caption_number(int metric, const vp_caption_scores *a) {
    return metric <= RULE_BLEU_1 && metric >= RULE_BLEU_4 ? a->bleu[RULE_BLEU_1 - metric] : metric == RULE_ROUGE_L ? a->rouge_l : a->cider_d;
}
static void put_caption_scores(vp_json_writer *w, const vp_caption_scores *a) { /* NULL: none */
    vp_json_key(w, "bleu");
    if (a) vp_json_begin_array(w); else vp_json_null(w);
    for (int n = 0; n < 4 && a; n++) vp_json_double(w, a->bleu[n]);
    if (a) vp_json_end_array(w);
    put_double(w, "cider_d", a ? a->cider_d : (double)NAN);
    put_double(w, "rouge_l", a ? a->rouge_l : (double)NAN);
}
/* each: of the rows with a score, in their order */
typedef struct caption_result { vp_caption_scores *each, corpus; size_t scored_count; } caption_result;
/* 0 or an exit code; no row with a score is no error. */
static int captions_score(const captions *c, const char *source, caption_result *r) {
    vp_caption_image *images = resize(NULL, c->row_count, sizeof *images);
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = VP_OK;
    memset(r, 0, sizeof *r);
    for (size_t i = 0; i < c->row_count; i++) {
        if (c->rows[i].trouble) continue;
        images[r->scored_count].candidate = c->texts[c->rows[i].first];
        images[r->scored_count].references = c->texts + c->rows[i].first + 1;
        images[r->scored_count++].reference_count = c->rows[i].reference_count;
    }
    r->each = resize(NULL, r->scored_count, sizeof *r->each);
    if (r->scored_count) result = vp_caption_corpus(images, r->scored_count, VP_CAPTION_TOKENISED, r->each, &r->corpus, &error);
    free(images);
    if (result == VP_OK) return 0;
    free(r->each);
    r->each = NULL;
    return complain_result(exit_code_of(result), source, result, &error);
}
static void put_caption_row(vp_json_writer *w, const captions *c, const caption_row *row, int metric, const vp_caption_scores *scores) {
    if (row->id) { vp_json_key(w, row->id_key); vp_json_raw(w, row->id, strlen(row->id)); }
    if (row->cleaned) put_text(w, "pred_cleaned", row->cleaned);
    if (metric == RULE_CAPTIONS && row->has_words) {
        put_text(w, "candidate_tokenised", c->texts[row->first].text);
        vp_json_key(w, "references_tokenised");
        vp_json_begin_array(w);
        for (size_t i = 1; i <= row->reference_count; i++) json_lossy(w, c->texts[row->first + i].text);
        vp_json_end_array(w);
    }
    put_caption_scores(w, scores);
    put_double(w, "score", scores ? caption_number(metric, scores) : (double)NAN);
    if (row->trouble) put_text(w, "reason", row->trouble);
}
static void put_caption_corpus(vp_json_writer *w, const captions *c, const caption_result *r, int metric) {
    vp_json_key(w, "corpus");
    vp_json_begin_object(w);
    put_caption_scores(w, r->scored_count ? &r->corpus : NULL);
    put_double(w, "score", r->scored_count ? caption_number(metric, &r->corpus) : (double)NAN);
    put_int(w, "images", (int64_t)r->scored_count);
    put_text(w, "tokenizer", c->tokenised_count ? "built-in tokenizer" : NULL);
    vp_json_end_object(w);
}
static void caption_summary(const captions *c, const caption_result *r, const char *metric) {
    const vp_caption_scores *a = &r->corpus;
    fprintf(stderr, "vlmprof: %s: %lld rows", metric, (long long)c->row_count);
    if (r->scored_count)
        fprintf(stderr, ", corpus of %lld: BLEU-1..4 %.6f %.6f %.6f %.6f, CIDEr-D %.6f, ROUGE-L %.6f (%s)", (long long)r->scored_count, a->bleu[0],
                a->bleu[1], a->bleu[2], a->bleu[3], a->cider_d, a->rouge_l, c->tokenised_count ? "built-in tokenizer" : "words as they are");
    fprintf(stderr, "; %lld without a score\n", (long long)(c->row_count - r->scored_count));
}
int captions_print(const captions *c, int metric, const char *name, const char *source) {
    text_buffer line = {NULL, 0, 0};
    caption_result r;
    vp_json_writer w;
    int code = captions_score(c, source, &r);
    for (size_t i = 0, k = 0; i < c->row_count && !code; i++) {
        line.bytes = 0;
        vp_json_writer_init_sink(&w, text_sink, &line, 0);
        vp_json_begin_object(&w);
        put_caption_row(&w, c, &c->rows[i], metric, c->rows[i].trouble ? NULL : &r.each[k++]);
        if (i + 1 == c->row_count) put_caption_corpus(&w, c, &r, metric);
        vp_json_end_object(&w);
        code = score_put_line(&w, &line, source);
    }
    if (!code) caption_summary(c, &r, name);
    free(r.each);
    free(line.data);
    return code;
}
/* A set, an object {"name", "images": [...]}, is a corpus and a line of its own. */
static int caption_set_print(score_job *job, scoring *s, const vp_json *j, uint32_t object, int metric) {
    captions c;
    caption_result r;
    text_buffer line = {NULL, 0, 0};
    vp_json_writer w;
    char label[160], *name = node_text(j, vp_json_get(j, object, "name"));
    uint32_t images = vp_json_get(j, object, "images");
    int code;
    memset(&c, 0, sizeof c);
    c.by_words = job->by_words;
    for (uint32_t i = images + 1; i < j->nodes[images].end; i = j->nodes[i].end) {
        if (node_is(j, i, VP_JSON_OBJECT)) caption_add_object(&c, s, j, i);
        else caption_add_row(&c, j, VP_JSON_NONE, "id")->trouble = "want one JSON object";
    }
    code = captions_score(&c, job->source, &r);
    vp_json_writer_init_sink(&w, text_sink, &line, 0);
    vp_json_begin_object(&w);
    if (name) put_text(&w, "name", name);
    vp_json_key(&w, "images");
    vp_json_begin_array(&w);
    for (size_t i = 0, k = 0; i < c.row_count && !code; i++) {
        vp_json_begin_object(&w);
        put_caption_row(&w, &c, &c.rows[i], metric, c.rows[i].trouble ? NULL : &r.each[k++]);
        vp_json_end_object(&w);
    }
    vp_json_end_array(&w);
    put_caption_corpus(&w, &c, &r, metric);
    put_double(&w, "score", r.scored_count ? caption_number(metric, &r.corpus) : (double)NAN);
    if (!r.scored_count) put_text(&w, "reason", "no image of the set has a prediction and references");
    vp_json_end_object(&w);
    if (!code) code = score_put_line(&w, &line, job->source);
    snprintf(label, sizeof label, "%.60s%s%.80s", job->name, name ? ", " : "", name ? name : "");
    for (char *p = label; *p; p++) if ((unsigned char)*p < 32 || *p == 127) *p = '?';
    if (!code) caption_summary(&c, &r, label);
    free(r.each);
    free(line.data);
    free(name);
    captions_free(&c);
    return code;
}

int caption_lines(score_job *job, scoring *s, parsed *p, int metric) {
    captions c;
    int are_sets = 0, code = 0;
    memset(&c, 0, sizeof c);
    c.by_words = job->by_words;
    for (size_t i = 0; i < job->line_count && !code; i++) {
        vp_error error = {VP_OK, -1, "", ""};
        vp_result r = parse_json(p, job->lines[i], job->line_bytes[i], &error);
        int is_object = r == VP_OK && node_is(&p->json, 0, VP_JSON_OBJECT);
        int is_set = is_object && node_is(&p->json, vp_json_get(&p->json, 0, "images"), VP_JSON_ARRAY);
        caption_row *row;
        if (!i) are_sets = is_set;
        if (is_set && are_sets) code = caption_set_print(job, s, &p->json, 0, metric);
        else if (is_object && !is_set && !are_sets) caption_add_object(&c, s, &p->json, 0);
        else {
            row = caption_add_row(&c, &p->json, VP_JSON_NONE, "id");
            row->reason = resize(NULL, LINE_BYTES, 1);
            snprintf(row->reason, LINE_BYTES, "line %lld: %s (byte %lld)", (long long)job->line_numbers[i],
                     r != VP_OK ? error.text : are_sets ? "want a set, as the first line is" : "want one JSON object of an image",
                     (long long)(error.offset < 0 ? 0 : error.offset));
            row->trouble = row->reason;
            job->bad_lines++;
            if (are_sets && (code = captions_print(&c, metric, job->name, job->source)) == 0) captions_clear(&c);
        }
    }
    if (!code && c.row_count) code = captions_print(&c, metric, job->name, job->source);
    captions_free(&c);
    return code;
}
