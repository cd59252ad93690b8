/* score_captions.c: scores a whole corpus of captions: CIDEr-D.
 * Every text is split into words when it is added. The library scores the complete corpus. Rows that cannot be scored
 * keep a reason and are excluded. */
#include "score/score_captions.h"

#include "base/console.h"
#include "vlmprof_caption.h"
#include "vlmprof_score.h"

#include <math.h>

struct caption_row {
    char *id, *reason;             /* owned; id is JSON; each may be NULL */
    const char *id_key;            /* the key of the id in the output */
    const char *trouble;           /* why there is no score; NULL if there is one */
    size_t first, reference_count; /* its texts: the candidate, then the references */
    int has_words;                 /* 1 if the words differ from the given texts, or were given as words */
};
struct captions {
    int by_words;           /* 1 if texts are already words, separated by white space */
    int with_summary;       /* 1 with --json: a line with the summary comes last */
    size_t tokenised_count; /* texts that the built-in tokenizer split into words */
    vp_caption_text *texts;
    size_t text_count; /* owned */
    struct caption_row *rows;
    size_t row_count;
};

static void captions_clear(struct captions *captions) {
    for (size_t i = 0; i < captions->text_count; i++) free((void *)(size_t)captions->texts[i].text);
    for (size_t i = 0; i < captions->row_count; i++) FREE_ALL(captions->rows[i].id, captions->rows[i].reason);
    captions->text_count = captions->row_count = captions->tokenised_count = 0;
}
static void captions_free(struct captions *captions) {
    captions_clear(captions);
    FREE_ALL(captions->texts, captions->rows);
}
/* Adds a text, split into words unless it is_words. Returns 1 if the words differ from the text. */
static int has_changed_text(struct captions *captions, const char *text, int is_words) {
    size_t bytes = strlen(text), room = bytes * 6 + 1, used = bytes;
    char *own;
    if (is_words) own = copy_text(text, bytes);
    else {
        own = resize(NULL, room, 1);
        if (vp_caption_tokenise(text, bytes, own, room, &used) != VP_OK) { /* never: the space is enough */
            used = 0;
            own[0] = 0;
        }
        own = resize(own, used + 1, 1);
        captions->tokenised_count++;
    }
    *ADDED(captions->texts, captions->text_count) = (vp_caption_text){own, used};
    return strcmp(own, text) != 0;
}
/* Adds a row without texts. `id` is a node of `json` or VP_JSON_NONE. The row is valid until the next one is added. */
static struct caption_row *caption_add_row(struct captions *captions, const vp_json *json, uint32_t id,
                                           const char *id_key) {
    struct caption_row *row = ADDED(captions->rows, captions->row_count);
    row->first = captions->text_count;
    row->id_key = id_key;
    row->id = json_text(json, id);
    return row;
}
/* Adds the texts of a row: the candidate, NULL for none, and the references of `object`. Sets the row's `trouble` if it
 * cannot be scored. is_words: the texts are already words. */
static void caption_add(struct captions *captions, struct caption_row *row, struct scoring *scoring,
                        const vp_json *json, uint32_t object, const char *candidate, int is_words) {
    const int splits_nothing = is_words || captions->by_words;
    const char *trouble = NULL;
    if (is_words) {
        if (!scoring_can_read_list(scoring, 0, json, vp_json_get(json, object, "references_tokenised"),
                                   &scoring->sample.references, &scoring->sample.reference_count))
            trouble = "the references must be strings";
    } else trouble = scoring_read(scoring, VP_SCORE_CAPTION_JACCARD, json, object);
    if (!candidate) trouble = "the row's prediction is not a string";
    if (!trouble && !scoring->sample.reference_count) trouble = "the row has no references to compare with";
    row->trouble = trouble;
    if (trouble) return;
    row->reference_count = scoring->sample.reference_count;
    row->has_words = has_changed_text(captions, candidate, splits_nothing) || is_words;
    for (size_t i = 0; i < row->reference_count; i++)
        if (has_changed_text(captions, scoring->sample.references[i], splits_nothing)) row->has_words = 1;
}
/* Adds the row of an image, from its ..._tokenised texts if it has them, otherwise from its plain texts. */
static void caption_add_object(struct captions *captions, struct scoring *scoring, const vp_json *json,
                               uint32_t object) {
    static const char *const keys[] = {"candidate_tokenised", "candidate", "prediction", "pred", "caption", "text"};
    int id_is_image = !has_value(json, object, "id") && has_value(json, object, "image_id"), key = 0;
    struct caption_row *row = caption_add_row(
        captions, json, vp_json_get(json, object, id_is_image ? "image_id" : "id"), id_is_image ? "image_id" : "id");
    scoring_clear(scoring);
    if (!has_value(json, object, "references_tokenised")) key = 1;
    while (key < 5 && !has_value(json, object, keys[key])) key++;
    caption_add(captions, row, scoring, json, object,
                scoring_own(scoring, node_text(json, vp_json_get(json, object, keys[key]))), key == 0);
}

/* The scores of the corpus, and of each row that has one, in row order. */
struct caption_result { double *each, corpus; size_t scored_count; };
/* Scores all rows without trouble, even if there are none. Returns 0 or an exit code. */
static int captions_score(const struct captions *captions, const char *source, struct caption_result *scored) {
    vp_caption_image *images = resize(NULL, captions->row_count, sizeof *images);
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = VP_OK;
    memset(scored, 0, sizeof *scored);
    for (size_t i = 0; i < captions->row_count; i++) {
        if (captions->rows[i].trouble) continue;
        vp_caption_image *image = &images[scored->scored_count++];
        image->candidate = captions->texts[captions->rows[i].first];
        image->references = captions->texts + captions->rows[i].first + 1;
        image->reference_count = captions->rows[i].reference_count;
    }
    scored->each = resize(NULL, scored->scored_count, sizeof *scored->each);
    if (scored->scored_count)
        result = vp_caption_corpus(images, scored->scored_count, scored->each, &scored->corpus, &error);
    free(images);
    if (result == VP_OK) return 0;
    free(scored->each);
    scored->each = NULL;
    return complain_result(exit_code_of(result), source, result, &error);
}
static void put_caption_row(vp_json_writer *writer, const struct captions *captions, const struct caption_row *row,
                            int metric, double score) {
    if (row->id) {
        vp_json_key(writer, row->id_key);
        vp_json_raw(writer, row->id, strlen(row->id));
    }
    if (metric == RULE_CAPTIONS && row->has_words) {
        PUT(writer, KEY("candidate_tokenised", captions->texts[row->first].text), KEY_ARRAY("references_tokenised"));
        for (size_t i = 1; i <= row->reference_count; i++) json_lossy(writer, captions->texts[row->first + i].text);
        vp_json_end_array(writer);
    }
    PUT(writer, KEY("cider_d", score), KEY("score", score));
    if (row->trouble) put_text(writer, "reason", row->trouble);
}
/* NaN without a scored row. */
static double corpus_score(const struct caption_result *scored) {
    return scored->scored_count ? scored->corpus : (double)NAN;
}
static void put_caption_corpus(vp_json_writer *writer, const struct captions *captions,
                               const struct caption_result *scored) {
    PUT(writer, KEY_OBJECT("corpus"), KEY("cider_d", corpus_score(scored)), KEY("score", corpus_score(scored)),
        KEY("images", scored->scored_count), KEY("tokenizer", captions->tokenised_count ? "built-in tokenizer" : NULL),
        END_OBJECT);
}
/* Prints the summary of a corpus on stderr, and with --json also as a line on stdout. `name` is the set's name or NULL.
 * Returns 0 or an exit code. */
static int caption_summary(const struct captions *captions, const struct caption_result *scored,
                           const char *metric_name, const char *name, const char *source) {
    char label[160];
    if (captions->with_summary) {
        struct text_buffer line = {NULL, 0, 0};
        vp_json_writer writer;
        summary_begin(&writer, &line);
        PUT(&writer, KEY("metric", metric_name), KEY("name", name), KEY("rows", captions->row_count),
            KEY("scored", scored->scored_count), KEY("unscored", (int64_t)(captions->row_count - scored->scored_count)),
            KEY("score", corpus_score(scored)));
        int code = summary_end(&writer, &line, source);
        free(line.data);
        if (code) return code;
    }
    snprintf(label, sizeof label, "%.60s%s%.80s", metric_name, name ? ", " : "", name ? name : "");
    hide_control_bytes(label);
    print_note("vlmprof: %s: %lld row%s", label, (long long)captions->row_count,
               plural_s((int64_t)captions->row_count));
    if (scored->scored_count)
        print_note(", corpus of %lld: CIDEr-D %.6f (%s)", (long long)scored->scored_count, scored->corpus,
                   captions->tokenised_count ? "built-in tokenizer" : "words verbatim");
    print_note("; %lld without a score\n", (long long)(captions->row_count - scored->scored_count));
    return 0;
}
/* Scores all rows together and prints one line per row; the last one also has the corpus. Returns 0 or an exit code. */
static int captions_print(const struct captions *captions, int metric, const char *name, const char *source) {
    struct text_buffer line = {NULL, 0, 0};
    struct caption_result scored;
    vp_json_writer writer;
    int code = captions_score(captions, source, &scored);
    for (size_t i = 0, k = 0; i < captions->row_count && !code; i++) {
        line.bytes = 0;
        vp_json_writer_init_sink(&writer, text_sink, &line, 0);
        vp_json_begin_object(&writer);
        put_caption_row(&writer, captions, &captions->rows[i], metric,
                        captions->rows[i].trouble ? (double)NAN : scored.each[k++]);
        if (i + 1 == captions->row_count) put_caption_corpus(&writer, captions, &scored);
        vp_json_end_object(&writer);
        code = score_put_line(&writer, &line, source);
    }
    if (!code) code = caption_summary(captions, &scored, name, NULL, source);
    FREE_ALL(scored.each, line.data);
    return code;
}
static void put_caption_set(vp_json_writer *writer, const struct captions *captions,
                            const struct caption_result *scored, int metric, const char *name) {
    vp_json_begin_object(writer);
    if (name) put_text(writer, "name", name);
    PUT(writer, KEY_ARRAY("images"));
    for (size_t i = 0, k = 0; i < captions->row_count; i++) {
        const struct caption_row *row = &captions->rows[i];
        vp_json_begin_object(writer);
        put_caption_row(writer, captions, row, metric, row->trouble ? (double)NAN : scored->each[k++]);
        vp_json_end_object(writer);
    }
    vp_json_end_array(writer);
    put_caption_corpus(writer, captions, scored);
    put_double(writer, "score", corpus_score(scored));
    if (!scored->scored_count) put_text(writer, "reason", "no image of the set has a prediction and references");
    vp_json_end_object(writer);
}
/* Scores a set, an object {"name", "images": [...]}, as a corpus, and prints its line. Returns 0 or an exit code. */
static int caption_set_print(struct score_job *job, struct scoring *scoring, const vp_json *json, uint32_t object,
                             int metric) {
    struct caption_result scored;
    struct text_buffer line = {NULL, 0, 0};
    vp_json_writer writer;
    char *name = node_text(json, vp_json_get(json, object, "name"));
    uint32_t images = vp_json_get(json, object, "images");
    struct captions captions = {.by_words = job->by_words, .with_summary = job->json};
    for (uint32_t i = images + 1; i < json->nodes[images].end; i = json->nodes[i].end) {
        if (node_is(json, i, VP_JSON_OBJECT)) caption_add_object(&captions, scoring, json, i);
        else caption_add_row(&captions, json, VP_JSON_NONE, "id")->trouble = "expected one JSON object";
    }
    int code = captions_score(&captions, job->source, &scored);
    if (!code) {
        vp_json_writer_init_sink(&writer, text_sink, &line, 0);
        put_caption_set(&writer, &captions, &scored, metric, name);
        code = score_put_line(&writer, &line, job->source);
    }
    if (!code) code = caption_summary(&captions, &scored, job->name, name, job->source);
    FREE_ALL(scored.each, line.data, name);
    captions_free(&captions);
    return code;
}

static void add_bad_line(struct captions *captions, const vp_json *json, int64_t number, const char *reason,
                         int64_t offset) {
    struct caption_row *row = caption_add_row(captions, json, VP_JSON_NONE, "id");
    row->reason = resize(NULL, LINE_BYTES, 1);
    snprintf(row->reason, LINE_BYTES, "line %lld: %s (byte %lld)", (long long)number, reason,
             (long long)(offset < 0 ? 0 : offset));
    row->trouble = row->reason;
}
int caption_lines(struct score_job *job, struct scoring *scoring, struct parsed *parsed, int metric) {
    int are_sets = 0, code = 0;
    struct captions captions = {.by_words = job->by_words, .with_summary = job->json};
    for (size_t i = 0; i < job->line_count && !code; i++) {
        vp_error error = {VP_OK, -1, "", ""};
        vp_result result = parse_json(parsed, job->lines[i].text, job->lines[i].bytes, &error);
        int is_object = result == VP_OK && node_is(&parsed->json, 0, VP_JSON_OBJECT);
        int is_set = is_object && node_is(&parsed->json, vp_json_get(&parsed->json, 0, "images"), VP_JSON_ARRAY);
        if (!i) are_sets = is_set;
        if (is_set && are_sets) code = caption_set_print(job, scoring, &parsed->json, 0, metric);
        else if (is_object && !is_set && !are_sets) caption_add_object(&captions, scoring, &parsed->json, 0);
        else {
            const char *reason = result != VP_OK ? error.text
                                 : are_sets      ? "expected a set, like the first line"
                                                 : "expected one JSON object per image";
            add_bad_line(&captions, &parsed->json, job->lines[i].number, reason, error.offset);
            job->bad_lines++;
            if (are_sets && (code = captions_print(&captions, metric, job->name, job->source)) == 0)
                captions_clear(&captions);
        }
    }
    if (!code && captions.row_count) code = captions_print(&captions, metric, job->name, job->source);
    captions_free(&captions);
    return code;
}
