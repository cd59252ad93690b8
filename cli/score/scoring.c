/* scoring.c: the score of one answer, and the tally of many scores.
 * Reads the members of a JSON object, which may have several names, into a vp_score_sample, and calls the library. */
#include "score/scoring.h"

#include "base/console.h"
#include "base/json.h"
#include "vlmprof_analysis.h"

#include <math.h>

int find_row_metric(const char *name, vp_score_metric *metric) {
    return vp_score_metric_find(!strcmp(name, "captions") ? "caption_jaccard" : name, metric) == VP_OK;
}
const char *few_answers_text(vp_score_metric metric, size_t count, char *line, size_t capacity) {
    snprintf(line, capacity, "%zu sample%s fewer than 3 reference answers: %s; --metric em compares with a single "
                             "answer", count, count == 1 ? " has" : "s have",
             metric == VP_SCORE_VQA_SEED ? "vqa_seed gives at most 1/3 for each answer"
                                         : "vqa_official gives at most 0.3 for two answers, and 0 for one");
    return line;
}
int has_few_answers(const struct scoring *scoring, vp_score_metric metric) {
    const vp_score_sample *sample = &scoring->sample;
    return (metric == VP_SCORE_VQA_SEED || metric == VP_SCORE_VQA_OFFICIAL) && !sample->is_plain_reference
           && sample->reference_count > 0 && sample->reference_count < 3;
}
void scoring_clear(struct scoring *scoring) {
    for (size_t i = 0; i < scoring->owned_count; i++) free(scoring->owned[i]);
    scoring->owned_count = scoring->text_bytes = 0;
    scoring->sample = vp_score_sample_default();
}
void scoring_free(struct scoring *scoring) {
    scoring_clear(scoring);
    free(scoring->owned);
    for (int i = 0; i < 3; i++) free((void *)scoring->lists[i]);
    FREE_ALL(scoring->scratch.data, scoring->more.data);
}
const char *scoring_own(struct scoring *scoring, char *text) {
    if (!text) return NULL;
    scoring->text_bytes += strlen(text);
    return *ADDED(scoring->owned, scoring->owned_count) = text;
}
size_t scoring_room(const struct scoring *scoring) {
    return vp_score_scratch_bytes(scoring->text_bytes, scoring->owned_count);
}

int scoring_can_read_list(struct scoring *scoring, int which, const vp_json *json, uint32_t node,
                          const char *const **list, size_t *count) {
    uint32_t one = !node_is(json, node, VP_JSON_ARRAY), texts = one ? 1 : json->nodes[node].count,
             element = one ? node : node + 1;
    if (scoring->capacities[which] <= texts) {
        scoring->capacities[which] = (size_t)texts + 1;
        scoring->lists[which] = resize(scoring->lists[which], scoring->capacities[which], sizeof **scoring->lists);
    }
    for (uint32_t k = 0; k < texts; k++, element = json->nodes[element].end) {
        /* VQA v2's annotations have objects */
        const uint32_t value =
            node_is(json, element, VP_JSON_OBJECT) ? vp_json_get(json, element, "answer") : element;
        scoring->lists[which][k] = scoring_own(scoring, node_value(json, value));
        if (!scoring->lists[which][k]) return 0;
    }
    *list = (const char *const *)scoring->lists[which];
    *count = texts;
    return 1;
}

/* The letter of "B", "(B)", "B.", "B)" or "B:" as an index; -1 for other texts. */
static int64_t letter_index(const char *text) {
    const int is_open = text[0] == '(';
    const char letter = text[is_open], *end = text + is_open + 1;
    if (letter < 'A' || letter > 'Z') return -1;
    return is_open ? (strcmp(end, ")") ? -1 : letter - 'A')
                   : !*end || (strchr(".):", *end) && !end[1]) ? letter - 'A' : -1;
}
/* The index of the right option: answer_index, answer_idx, or "answer" as a label, an index, a letter or an option's
 * text; -1 if the row has none of them, -2 if it has one that is not among the options. */
static int64_t scoring_index(const struct scoring *scoring, const struct text_list *labels, const vp_json *json,
                             uint32_t object) {
    static const char *const keys[] = {"answer_index", "answer_idx", "answer"};
    const vp_score_sample *sample = &scoring->sample;
    const int64_t count = (int64_t)(sample->option_count ? sample->option_count : sample->option_name_count);
    int64_t index = -1;
    uint32_t answer = VP_JSON_NONE;
    for (int i = 0; i < 3 && answer == VP_JSON_NONE; i++)
        if (has_value(json, object, keys[i])) answer = vp_json_get(json, object, keys[i]);
    char *text = answer == VP_JSON_NONE ? NULL : node_value(json, answer);
    if (!text) return -1;
    for (size_t i = 0; i < labels->count && index < 0; i++)
        if (!strcmp(labels->items[i], text)) index = (int64_t)i;
    if (index < 0 && vp_json_to_int(json, answer, &index) != VP_OK) {
        index = letter_index(text);
        if (count && index >= count) index = -1;
        for (size_t i = 0; i < sample->option_count && (index < 0 || text[1]); i++)
            if (!strcmp(sample->options[i], text)) { index = (int64_t)i; break; }
        if (index < 0 && count) index = -2;
    } else if (count && (index < 0 || index >= count)) index = -2;
    free(text);
    return index;
}

static int is_mmmu(int metric) {
    return metric == VP_SCORE_MMMU || metric == VP_SCORE_MMMU_CHOICE || metric == VP_SCORE_MMMU_OPEN;
}

/* Returns 1 if MMMU's rules need this answer as a letter: it is an index, or the text of an option. */
static int wants_letter(const struct scoring *scoring, const vp_json *json, uint32_t answer) {
    const vp_score_sample *sample = &scoring->sample;
    if (!sample->option_count || sample->answer_index < 0 || sample->answer_index > 25) return 0;
    if (node_is(json, answer, VP_JSON_NUMBER)) return 1;
    return sample->is_plain_reference && sample->references[0][0] && sample->references[0][1];
}
/* Reads the options of a multiple-choice question. Returns NULL or the error in them. */
static const char *read_options(struct scoring *scoring, const vp_json *json, uint32_t object,
                                struct text_list *labels) {
    vp_score_sample *sample = &scoring->sample;
    struct text_list options = {NULL, 0};
    const char *bad = json_options(json, object, &options, labels);
    const int has_options = options.count > 0 || has_value(json, object, "options");
    if (scoring->capacities[1] <= options.count) {
        scoring->capacities[1] = options.count + 1;
        scoring->lists[1] = resize(scoring->lists[1], scoring->capacities[1], sizeof **scoring->lists);
    }
    for (size_t i = 0; i < options.count; i++) scoring->lists[1][i] = scoring_own(scoring, options.items[i]);
    if (has_options) sample->options = (const char *const *)scoring->lists[1];
    sample->option_count = options.count;
    free(options.items);
    if (!bad && has_value(json, object, "option_names")
        && !scoring_can_read_list(scoring, 2, json, vp_json_get(json, object, "option_names"), &sample->option_names,
                                  &sample->option_name_count))
        return "\"option_names\" must be strings";
    return bad;
}
/* Reads the references from the first key that has them. Returns NULL or the error in them. */
static const char *read_references(struct scoring *scoring, int metric, const vp_json *json, uint32_t object) {
    static const char *const keys[] = {"answer", "references", "reference", "answers", "captions", "answer"};
#define WRONG(key) "\"" key "\" must be a string, a number or a list of these"
    static const char *const wrong[] = {WRONG("answer"),  WRONG("references"), WRONG("reference"),
                                        WRONG("answers"), WRONG("captions"),   WRONG("answer")};
    vp_score_sample *sample = &scoring->sample;
    for (size_t i = !is_mmmu(metric); i < sizeof keys / sizeof *keys && !sample->references; i++) {
        uint32_t node = vp_json_get(json, object, keys[i]);
        int is_index = node_is(json, node, VP_JSON_NUMBER) && sample->option_count && !is_mmmu(metric)
                       && !strcmp(keys[i], "answer");
        if (!has_value(json, object, keys[i]) || is_index) continue;
        if (!scoring_can_read_list(scoring, 0, json, node, &sample->references, &sample->reference_count))
            return wrong[i];
        /* data sets have "answers"; a text is a list of one, as in a sweep */
        sample->is_plain_reference =
            node_is(json, node, VP_JSON_STRING) && (metric != VP_SCORE_VQA_SEED || strcmp(keys[i], "answers") != 0);
        if (is_mmmu(metric) && wants_letter(scoring, json, node)) {
            char letter = (char)('A' + sample->answer_index);
            scoring->lists[0][0] = scoring_own(scoring, copy_text(&letter, 1));
        }
    }
    return NULL;
}

const char *scoring_read(struct scoring *scoring, int metric, const vp_json *json, uint32_t object) {
    vp_score_sample *sample = &scoring->sample;
    struct text_list labels = {NULL, 0};
    const char *trouble = read_options(scoring, json, object, &labels);
    sample->answer_index = trouble ? -1 : scoring_index(scoring, &labels, json, object);
    text_list_free(&labels);
    if (trouble) return trouble;
    if (sample->answer_index == -2) return "\"answer\" (or \"answer_index\") is not one of the options";
    sample->question_type = scoring_own(scoring, node_text(json, vp_json_get(json, object, "question_type")));
    return read_references(scoring, metric, json, object);
}

vp_result scoring_run(struct scoring *scoring, vp_score_metric metric, vp_score_cleaning cleaning,
                      vp_score_outcome *outcome) {
    size_t room = scoring_room(scoring);
    return room == SIZE_MAX ? VP_ERR_CAPACITY
        : vp_score_compute(metric, cleaning, &scoring->sample, reserve(&scoring->scratch, room, 1), room, outcome);
}

vp_score_metric scoring_default_metric(struct scoring *scoring, const vp_json *json) {
    vp_score_metric metric;
    vp_score_metric_for_dataset("", &metric);
    scoring_clear(scoring);
    if (!scoring_read(scoring, VP_SCORE_MC, json, 0) && scoring->sample.option_count > 1
        && scoring->sample.answer_index >= 0 && (size_t)scoring->sample.answer_index < scoring->sample.option_count)
        metric = VP_SCORE_MC;
    return metric;
}
void scoring_as_run(struct scoring *scoring) {
    scoring->sample.is_plain_reference = 0;
    if (!scoring->sample.reference_count) scoring->sample.references = NULL;
}
void tally_add(struct tally *tally, double score, int is_unparsed, int is_empty) {
    tally->row_count++;
    tally->unparsed_count += is_unparsed;
    tally->empty_count += is_empty;
    if (is_unparsed) score = 0; /* the reference implementation would guess; here a guess scores 0 */
    if (isfinite(score)) {
        double before = score - tally->mean;
        if (tally->keeps_values && !tally->is_binary) {
            tally->values = grown(tally->values, (size_t)tally->scored_count, sizeof *tally->values);
            tally->values[tally->scored_count] = score;
        }
        tally->mean += before / (double)++tally->scored_count;
        tally->spread += before * (score - tally->mean);
    } else tally->unscored_count++;
}
double tally_error(const struct tally *tally) {
    double count = (double)tally->scored_count;
    return tally->scored_count > 1 ? sqrt(tally->spread / (count - 1) / count) : (double)NAN;
}
void tally_free(struct tally *tally) {
    free(tally->values);
    tally->values = NULL;
}
/* The interval of the mean at 95 %, Wilson's of right and wrong answers, Gaffke's of kept values. Returns its name, or
 * NULL if there is none. */
static const char *tally_interval(const struct tally *tally, double *low, double *high) {
    const uint64_t count = (uint64_t)tally->scored_count, hits = (uint64_t)floor(tally->mean * (double)count + 0.5);
    const size_t bytes = vp_bounded_scratch_bytes((size_t)count);
    vp_bounded_interval interval;
    if (tally->is_binary) return vp_rate_interval(hits, count, 0.95, low, high) == VP_OK ? "Wilson" : NULL;
    if (!tally->values) return NULL;
    void *scratch = resize(NULL, bytes, 1);
    int is_found = vp_bounded_mean(NULL, tally->values, (size_t)count, 0, 1, 0.95, scratch, bytes, &interval) == VP_OK;
    free(scratch);
    *low = is_found ? interval.low : 0;
    *high = is_found ? interval.high : 0;
    return is_found ? "Gaffke" : NULL;
}
void tally_print(const struct tally *tally, const char *metric) {
    double low = 0, high = 0, error = tally_error(tally);
    const char *interval = tally_interval(tally, &low, &high);
    print_note("vlmprof: %s: %lld row%s", metric, (long long)tally->row_count, plural_s(tally->row_count));
    if (tally->scored_count) print_note(", mean %.6f over %lld", tally->mean, (long long)tally->scored_count);
    if (isfinite(error)) print_note(", standard error %.6f", error);
    if (interval) print_note(", 95 %% interval %.6f to %.6f (%s)", low, high, interval);
    if (tally->unscored_count) print_note("; %lld without a score", (long long)tally->unscored_count);
    if (tally->unparsed_count)
        print_note("; %lld answer%s that the rule could not read (scored 0)", (long long)tally->unparsed_count,
                   plural_s(tally->unparsed_count));
    if (tally->nearest_count)
        print_note("; %lld name%s no option: the rule guessed the nearest one", (long long)tally->nearest_count,
                   tally->nearest_count == 1 ? "s" : "");
    if (tally->empty_count) print_note("; %lld empty", (long long)tally->empty_count);
    print_note("\n");
}
void tally_put(vp_json_writer *writer, const struct tally *tally, const char *metric) {
    double low = 0, high = 0;
    int has_interval = tally_interval(tally, &low, &high) != NULL;
    PUT(writer, KEY("metric", metric), KEY("rows", tally->row_count), KEY("scored", tally->scored_count),
        KEY("unscored", tally->unscored_count), KEY("unparsed", tally->unparsed_count),
        KEY("nearest", tally->nearest_count), KEY("empty", tally->empty_count),
        KEY("mean", tally->scored_count ? tally->mean : (double)NAN), KEY("standard_error", tally_error(tally)));
    put_interval(writer, "interval", has_interval, low, high);
}
