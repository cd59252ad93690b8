/* scoring.c: an object with an answer and references to its score; what many scores come to.
 * A JSON object that holds what a scoring rule asks for (a golden row, a data set's record, a result's metadata) ->
 * its score. */
#include "score/scoring.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void scoring_clear(scoring *s) {
    for (size_t i = 0; i < s->owned_count; i++) free(s->owned[i]);
    s->owned_count = s->text_bytes = 0;
    s->sample = vp_score_sample_default();
}
void scoring_free(scoring *s) {
    scoring_clear(s);
    free(s->owned);
    for (int i = 0; i < 3; i++) free((void *)s->lists[i]);
    free(s->scratch.data);
    free(s->more.data);
}
const char *scoring_own(scoring *s, char *text) {
    if (!text) return NULL;
    if (s->owned_count == s->owned_capacity) {
        s->owned_capacity = s->owned_capacity * 2 + 32;
        s->owned = resize(s->owned, s->owned_capacity, sizeof *s->owned);
    }
    s->text_bytes += strlen(text);
    return s->owned[s->owned_count++] = text;
}
size_t scoring_room(const scoring *s) { return vp_score_scratch_bytes(s->text_bytes, s->owned_count); }

/* A string, a number as it is written, or the "answer" of an object (VQA v2's annotations); NULL: none of these. */
static char *value_text(const vp_json *j, uint32_t node) {
    if (node_is(j, node, VP_JSON_NUMBER)) return copy_text(j->text + j->nodes[node].start, (size_t)j->nodes[node].bytes);
    return node_text(j, node_is(j, node, VP_JSON_OBJECT) ? vp_json_get(j, node, "answer") : node);
}
int scoring_list(scoring *s, int which, const vp_json *j, uint32_t node, const char *const **list, size_t *count) {
    uint32_t one = !node_is(j, node, VP_JSON_ARRAY), texts = one ? 1 : j->nodes[node].count, i = one ? node : node + 1;
    if (s->capacities[which] <= texts) {
        s->capacities[which] = (size_t)texts + 1;
        s->lists[which] = resize(s->lists[which], s->capacities[which], sizeof **s->lists);
    }
    for (uint32_t k = 0; k < texts; k++, i = j->nodes[i].end)
        if ((s->lists[which][k] = scoring_own(s, value_text(j, i))) == NULL) return 0;
    *list = (const char *const *)s->lists[which];
    *count = texts;
    return 1;
}

/* answer_index or answer_idx; else "answer" as an index, a letter or an option's text; -1 without any. */
static int64_t scoring_index(const scoring *s, const vp_json *j, uint32_t object) {
    int64_t index = -1;
    size_t count = s->sample.option_count ? s->sample.option_count : s->sample.option_name_count;
    uint32_t answer = vp_json_get(j, object, "answer");
    char *text;
    if (vp_json_to_int(j, vp_json_get(j, object, "answer_index"), &index) == VP_OK) return index;
    if (vp_json_to_int(j, vp_json_get(j, object, "answer_idx"), &index) == VP_OK) return index;
    if (vp_json_to_int(j, answer, &index) == VP_OK) return index;
    if ((text = node_text(j, answer)) == NULL) return -1;
    if (text[0] >= 'A' && text[0] <= 'Z' && !text[1] && (!count || (size_t)(text[0] - 'A') < count)) index = text[0] - 'A';
    for (size_t i = 0; i < s->sample.option_count && index < 0; i++) if (!strcmp(s->sample.options[i], text)) index = (int64_t)i;
    free(text);
    return index;
}

static int is_mmmu(int metric) { return metric == VP_SCORE_MMMU || metric == VP_SCORE_MMMU_CHOICE || metric == VP_SCORE_MMMU_OPEN; }

const char *scoring_read(scoring *s, int metric, const vp_json *j, uint32_t object) {
    static const char *const keys[] = {"answer", "references", "reference", "answers", "captions", "answer"};
    vp_score_sample *a = &s->sample;
    int by_answer = is_mmmu(metric) || metric == VP_SCORE_MATH_VISTA; /* the first key is theirs alone */
    char letter[2] = {0, 0};
    uint32_t choices = vp_json_get(j, object, has_value(j, object, "options") ? "options" : "choices");
    if (choices != VP_JSON_NONE && !node_is(j, choices, VP_JSON_NULL) && !scoring_list(s, 1, j, choices, &a->options, &a->option_count))
        return "the options must be texts";
    if (has_value(j, object, "option_names")
        && !scoring_list(s, 2, j, vp_json_get(j, object, "option_names"), &a->option_names, &a->option_name_count))
        return "the option names must be texts";
    a->answer_index = scoring_index(s, j, object);
    a->question_type = scoring_own(s, node_text(j, vp_json_get(j, object, "question_type")));
    a->answer_type = scoring_own(s, node_text(j, vp_json_get(j, object, "answer_type")));
    if (vp_json_to_int(j, vp_json_get(j, object, "precision"), &a->precision) != VP_OK) a->precision = INT64_MIN;
    for (size_t i = !by_answer; i < sizeof keys / sizeof *keys && !a->references; i++) {
        uint32_t node = vp_json_get(j, object, keys[i]);
        if (!has_value(j, object, keys[i])) continue;
        if (node_is(j, node, VP_JSON_NUMBER) && a->option_count && !is_mmmu(metric) && !strcmp(keys[i], "answer")) continue; /* an index */
        if (!scoring_list(s, 0, j, node, &a->references, &a->reference_count)) return "the references must be texts";
        a->is_plain_reference = node_is(j, node, VP_JSON_STRING);
        if (!is_mmmu(metric) || !a->option_count || a->answer_index < 0 || a->answer_index > 25) continue;
        if (!node_is(j, node, VP_JSON_NUMBER) && !(a->is_plain_reference && a->references[0][0] && a->references[0][1])) continue;
        letter[0] = (char)('A' + a->answer_index); /* an index or an option's text: the rule wants the letter */
        s->lists[0][0] = scoring_own(s, copy_text(letter, 1));
    }
    return NULL;
}

vp_result scoring_run(scoring *s, vp_score_metric metric, vp_score_cleaning cleaning, vp_score_outcome *outcome) {
    size_t room = scoring_room(s);
    return room == SIZE_MAX ? VP_ERR_CAPACITY
        : vp_score_compute(metric, cleaning, &s->sample, reserve(&s->scratch, room, 1), room, outcome);
}

void scoring_as_run(scoring *s) {
    s->sample.is_plain_reference = 0;
    if (!s->sample.reference_count) s->sample.references = NULL;
}
void tally_add(tally *t, double score, int is_unparsed, int is_empty) {
    t->row_count++;
    t->unparsed_count += is_unparsed;
    t->empty_count += is_empty;
    if (is_unparsed) score = 0; /* the reference would guess there; a guess earns nothing */
    if (isfinite(score)) {
        double before = score - t->mean;
        t->mean += before / (double)++t->scored_count;
        t->spread += before * (score - t->mean);
    } else t->unscored_count++;
}
double tally_error(const tally *t) {
    double n = (double)t->scored_count;
    return t->scored_count > 1 ? sqrt(t->spread / (n - 1) / n) : (double)NAN;
}
int tally_interval(const tally *t, double *low, double *high) {
    double n = (double)t->scored_count, hits = floor(t->mean * n + 0.5);
    return t->is_binary && vp_score_wilson(hits, n, 1.959963984540054, low, high) == VP_OK;
}
void tally_print(const tally *t, const char *metric) {
    double low, high, error = tally_error(t);
    fprintf(stderr, "vlmprof: %s: %lld rows", metric, (long long)t->row_count);
    if (t->scored_count) fprintf(stderr, ", mean %.6f over %lld", t->mean, (long long)t->scored_count);
    if (isfinite(error)) fprintf(stderr, ", standard error %.6f", error);
    if (tally_interval(t, &low, &high)) fprintf(stderr, ", 95 %% interval %.6f to %.6f (Wilson)", low, high);
    fprintf(stderr, "; %lld without a score, %lld unparsed%s, %lld empty\n", (long long)t->unscored_count, (long long)t->unparsed_count,
            t->unparsed_count ? " (0 in the mean)" : "", (long long)t->empty_count);
}
