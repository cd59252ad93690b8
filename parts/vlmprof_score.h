/* vlmprof_score.h - v0.2.0 - scoring rules - MIT licence
 *
 * Do this:
 *     const char *references[] = {"cat", "a cat"};
 *     char scratch[4096];
 *     double score = 0;
 *     vp_score_anls("cats", references, 2, scratch, sizeof scratch, &score);
 *     printf("%g\n", score);
 * It prints 0.75, the ANLS of the prediction "cats". vp_score_compute applies any rule; vp_score_metric_find finds a
 * rule by name, and vp_score_scratch_bytes computes a sufficient scratch size.
 *
 * Texts are UTF-8 and end with a NUL. Case, white space, digits and word characters follow Python's str and re
 * (Unicode 14.0). Bytes that are not UTF-8 are kept unchanged.
 *
 * Includes vlmprof.h and vlmprof_unicode.h if needed.
 * In one file, define VLMPROF_IMPLEMENTATION for all headers of vlmprof that it includes, or
 * VLMPROF_SCORE_IMPLEMENTATION for only this one. The manual is in vlmprof.h. */
#ifndef VLMPROF_SCORE_H
#define VLMPROF_SCORE_H
#ifndef VLMPROF_JSON_H
#include "vlmprof_json.h"
#endif
#ifndef VLMPROF_UNICODE_H
#include "vlmprof_unicode.h"
#endif

VP_EXTERN_C_BEGIN

/* Cleans a prediction as the experiments do before scoring. The result is the text between the first "Answer:" and the
 * next; otherwise, if there are newlines, the last line that is not blank; both stripped. Otherwise the prediction is
 * stripped, and each run of white space becomes one space.
 * out:     out      [capacity] with NUL; on success only; must not overlap prediction
 *          needed   bytes without the NUL, at most the size of the prediction; also on VP_ERR_CAPACITY; may be NULL
 * returns: VP_OK; VP_ERR_CAPACITY; VP_ERR_RANGE: a NULL text
 * source:  github.com/ChulanZhang/molmo_hf 09bce1f, experiments/base_experiment.py, compute_accuracy
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_score_clean(const char *prediction, char *out, size_t capacity, size_t *needed);
/* The VQA normalisation: lower case, punctuation handling, number words to digits, articles removed, contractions
 * expanded, words joined by one space.
 * out:     out, needed   as above; at most 1.5 times the size of the text
 * returns: as above
 * rule:    a punctuation character that is next to a space anywhere is deleted everywhere; any other becomes a space.
 *          If "digit comma digit" occurs, all punctuation is deleted. Then the first 32 periods that no digit follows
 *          are removed
 * source:  the same repository, molmo/eval/vqa.py, preprocess_answer
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_score_vqa_normalise(const char *text, char *out, size_t capacity, size_t *needed);
/* The same as in the VQA v2 evaluator, which lower-cases last; only a capital sigma next to a deleted character makes a
 * difference. All else is as above. */
VP_API vp_result vp_score_vqa_normalise_official(const char *text, char *out, size_t capacity, size_t *needed);
/* The VQA v2 evaluator's processing for identical references: newlines and tabs become spaces, and the text is
 * stripped. All else is as above; the result is never longer. */
VP_API vp_result vp_score_vqa_strip(const char *text, char *out, size_t capacity, size_t *needed);
/* vqa_seed, the experiments' VQA score: min(matching references / 3, 1), both sides normalised. A single reference
 * gives at most 1/3.
 * in:      prediction       output of vp_score_clean
 *          references       [reference_count]; without references the score is 0
 *          scratch          any size; 4 * the longest text + 64 bytes always suffice
 * out:     score            0..1, on success only
 * returns: VP_OK; VP_ERR_CAPACITY: scratch is too small; VP_ERR_RANGE: a NULL text
 * source:  the same file, vqa_score
 * memory:  none
 * threads: reentrant */
typedef vp_result vp_score_rule(const char *prediction, const char *const *references, size_t reference_count,
                                char *scratch, size_t scratch_bytes, double *score);
VP_API vp_score_rule vp_score_vqa_seed;
/* The cleaning of the experiments' evaluator classes. The text is stripped first. If it has newlines and no "Answer:",
 * the result is the most frequent line; of equals, the first. Each line is stripped, and its runs of white space become
 * one space. Empty lines count too.
 * in:      scratch   [scratch_bytes]; vp_score_scratch_bytes(size of the prediction, 1) suffices
 * out:     out, needed   as vp_score_clean; out must not overlap scratch
 * returns: VP_OK; VP_ERR_CAPACITY: out or scratch is too small (with scratch, *needed is untouched); VP_ERR_RANGE: a
 *          NULL text
 * source:  the same repository, molmo/eval/evaluators.py, VqaEval
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_score_clean_frequent(const char *prediction, char *scratch, size_t scratch_bytes, char *out,
                                         size_t capacity, size_t *needed);

/* A scratch size that suffices for every rule below, if the prediction, references, options and names have this many
 * bytes in total.
 * returns: bytes; SIZE_MAX on overflow */
VP_API size_t vp_score_scratch_bytes(size_t text_bytes, size_t text_count);

/* Scores of a prediction against references. All are called like vp_score_vqa_seed; the prediction is not cleaned.
 * in:      scratch          vp_score_scratch_bytes of all texts
 * returns: VP_OK; VP_ERR_CAPACITY: scratch is too small; VP_ERR_RANGE: a NULL text; VP_ERR_MISMATCH: the score is
 *          undefined (see each)
 * memory:  none
 * threads: reentrant */
/* The VQA v2 evaluator: the mean over the references of min(matches among the other references / 3, 1). If all
 * references are identical, neither side is normalised and case matters. No references: VP_ERR_MISMATCH.
 * source:  github.com/GT-Vision-Lab/VQA a013f00, PythonEvaluationTools/vqaEvaluation/vqaEval.py */
VP_API vp_score_rule vp_score_vqa_official;
/* 1 if a reference is equal after lower-casing and stripping, else 0. source: base_experiment.py,
 * compute_accuracy */
VP_API vp_score_rule vp_score_em;
/* The same without stripping. source: evaluators.py, VqaEval */
VP_API vp_score_rule vp_score_em_unstripped;
/* The largest 1 - d over the references; 0 unless d < 0.5. d is the edit distance in lower case, divided by the longer
 * length before lower-casing. Two empty texts: VP_ERR_MISMATCH. numeric: bit-exact. source: vqa.py, anls_metric */
VP_API vp_score_rule vp_score_anls;
/* 1 if a reference is a number other than 0 and the prediction is a number within 5 % of it; otherwise 1 if both are
 * equal in lower case. No references: VP_ERR_MISMATCH.
 * rule:    numbers are parsed like Python's float(); a final "%" divides by 100. source: vqa.py,
 *          relaxed_correctness */
VP_API vp_score_rule vp_score_relaxed;
/* min(matching references / 3, 1) after lower-casing and stripping. source: vqa.py, a_okvqa_score */
VP_API vp_score_rule vp_score_a_okvqa;
/* Largest |words in both| / |words in either| over the references, as sets after the VQA normalisation. The experiments
 * report this for captions. source: vqa.py, cider_score (its fallback, which always runs) */
VP_API vp_score_rule vp_score_caption_jaccard;
/* Open questions of MMMU: 1 if a normalised reference is inside one of the prediction's strings or equals one of its
 * numbers.
 * source: molmo/eval/mmmu_eval_utils.py, parse_open_response and eval_open */
VP_API vp_score_rule vp_score_mmmu_open;

/* Edit distance (insertions, deletions, substitutions) in code points of both texts, lower-cased and stripped as in the
 * text rule. returns, memory, threads: as above. The time is the product of the lengths, without the common prefix and
 * suffix */
VP_API vp_result vp_score_option_distance(const char *prediction, const char *option, char *scratch,
                                          size_t scratch_bytes, size_t *distance);
/* The text rule of multiple choice, lower-cased and stripped: the option that equals the prediction; otherwise the only
 * option that contains it; otherwise the nearest by edit distance; of equals, the first.
 * out:     index  0..option_count - 1, on success only
 * returns: as above; VP_ERR_MISMATCH: no options, or two that are equal after lower-casing and stripping (where the
 *          reference fails)
 * source:  vqa.py, select_mc_option */
VP_API vp_result vp_score_select_option(const char *prediction, const char *const *options, size_t option_count,
                                        char *scratch, size_t scratch_bytes, int32_t *index);
/* Multiple choice of MMMU: "(A)"; otherwise " A "; otherwise (more than 5 words) an option's text. Of several matches,
 * the last in the text counts.
 * out:     index  0..25, counting only options that are not empty; on success only
 * returns: as above; VP_ERR_NOT_FOUND: nothing was found (where the reference picks at random)
 * source:  mmmu_eval_utils.py, parse_multi_choice_response */
VP_API vp_result vp_score_mmmu_choice(const char *prediction, const char *const *options, size_t option_count,
                                      char *scratch, size_t scratch_bytes, int32_t *index);
/* Texts in scratch, each with NUL. */
typedef struct vp_score_texts { const char *const *texts; size_t count; } vp_score_texts;
/* The rule's result for a prediction: two sets, in scratch; strings in byte order, numbers ascending with NaN last. */
typedef struct vp_score_mmmu_answer {
    vp_score_texts strings;
    const double *numbers;
    size_t number_count;
} vp_score_mmmu_answer;
VP_API vp_result vp_score_mmmu_parse(const char *prediction, char *scratch, size_t scratch_bytes,
                                     vp_score_mmmu_answer *answer);

/* ---- metrics by name */
typedef enum vp_score_cleaning { VP_SCORE_CLEAN_NONE, VP_SCORE_CLEAN_LAST, VP_SCORE_CLEAN_FREQUENT } vp_score_cleaning;
/* X(metric, name, other names with a space on either side, cleaning in the rule's own evaluator, cleaning in a run of
 * the experiments, 1: scores are only 0 or 1, required references, function). Rules in the experiments'
 * compute_accuracy run with its cleaning (LAST); rules only in VqaEval run with that cleaning (FREQUENT). References:
 * NONE, a LIST that may be empty, at least ONE. PLAIN(NAME): vp_score_NAME, which takes prediction and references;
 * WHOLE(NAME): vp_impl_score_NAME, which takes the whole sample.
 * A new rule needs a line here and its function. For the details that the score command shows next to a score, see
 * SCORE_DETAILS in cli/score/score_rules.c. */
#define VP_SCORE_METRICS(X) \
    X(VQA_SEED, "vqa_seed", " vqa_score ", NONE, LAST, 0, LIST, WHOLE(plain_vqa)) \
    X(VQA_OFFICIAL, "vqa_official", " ", NONE, LAST, 0, ONE, PLAIN(vqa_official)) \
    X(EM, "em", " ", LAST, LAST, 1, LIST, PLAIN(em)) \
    X(ANLS, "anls", " ansl ansl_em ", NONE, LAST, 0, LIST, WHOLE(anls_rule)) \
    X(RELAXED, "relaxed", " relaxed_correctness ", NONE, FREQUENT, 1, ONE, PLAIN(relaxed)) \
    X(MC, "mc", " ", LAST, LAST, 1, NONE, WHOLE(mc_rule)) \
    X(MC_TEXT, "mc_ai2d", " mc_ai2d_transparent mc_ai2d_opaque ", FREQUENT, FREQUENT, 1, NONE, WHOLE(mc_text)) \
    X(MMMU, "mmmu", " mmmu_score ", NONE, LAST, 1, LIST, WHOLE(mmmu)) \
    X(MMMU_CHOICE, "mmmu_multiple_choice", " ", NONE, LAST, 1, LIST, WHOLE(mmmu_letters)) \
    X(MMMU_OPEN, "mmmu_open", " ", NONE, LAST, 1, LIST, PLAIN(mmmu_open)) \
    X(A_OKVQA, "a_okvqa", " a_okvqa_score ", NONE, FREQUENT, 0, LIST, PLAIN(a_okvqa)) \
    X(REAL_WORLD_QA, "real_world_qa", " real_world_qa_score ", NONE, FREQUENT, 1, ONE, WHOLE(real_world)) \
    X(SEED_BENCH, "seed_bench", " seed_bench_score ", FREQUENT, FREQUENT, 1, NONE, WHOLE(seed_bench)) \
    X(CAPTION_JACCARD, "caption_jaccard", " ", NONE, LAST, 0, LIST, PLAIN(caption_jaccard))
typedef enum vp_score_metric {
#define VP_IMPL_SCORE_ENUM(metric, ...) VP_SCORE_##metric,
    VP_SCORE_METRICS(VP_IMPL_SCORE_ENUM)
#undef VP_IMPL_SCORE_ENUM
        VP_SCORE_METRIC_COUNT
} vp_score_metric;
typedef struct vp_score_metric_info {
    const char *name, *others;
    vp_score_cleaning own_cleaning, run_cleaning;
    int is_binary;
} vp_score_metric_info;
/* returns: the table's entry; NULL outside 0..VP_SCORE_METRIC_COUNT - 1. memory: static */
VP_API const vp_score_metric_info *vp_score_metric_of(vp_score_metric metric);
/* returns: VP_OK; VP_ERR_NOT_FOUND: no metric has this name or alias; VP_ERR_RANGE */
VP_API vp_result vp_score_metric_find(const char *name, vp_score_metric *metric);
/* The experiments' metric for a data set ("text_vqa" or "text-vqa"); vqa_seed for unknown names. For captions it is
 * caption_jaccard, as in the reference, whose CIDEr path never runs. returns: as vp_score_metric_find, never
 * VP_ERR_NOT_FOUND. source: base_experiment.py, get_metric_for_dataset */
VP_API vp_result vp_score_metric_for_dataset(const char *dataset_name, vp_score_metric *metric);

/* Inputs that a rule may need from a row; each rule ignores the members that it does not need. Start with
 * vp_score_sample_default(). */
typedef struct vp_score_sample {
    const char *prediction; /* before cleaning */
    /* letters in MMMU's multiple choice. NULL: not known, which differs from an empty list */
    const char *const *references; size_t reference_count;
    /* 1: the only reference was a string, not a list; vqa_seed then compares it unprocessed */
    int is_plain_reference;
    const char *const *options; size_t option_count;
    const char *const *option_names; size_t option_name_count;
    int64_t answer_index;                                   /* -1: no index */
    /* NULL: no type. mmmu without a type is multiple choice if there are options */
    const char *question_type;
} vp_score_sample;
VP_API vp_score_sample vp_score_sample_default(void);
typedef struct vp_score_outcome {
    double score;         /* NaN if there is none */
    const char *reason;   /* static; why there is no score; else NULL */
    int is_unparsed;      /* no answer was found where the reference would pick one at random; score is NaN */
    int32_t option_index; /* the chosen option; -1 if there is none */
    const char *cleaned;  /* the text that was scored, in scratch */
    int is_nearest;       /* 1: the answer names no option; the rule took the nearest by edit distance */
} vp_score_outcome;
/* Cleans a prediction and scores it.
 * in:      scratch  vp_score_scratch_bytes of all texts of the sample
 * out:     outcome  on VP_OK, even if there is no score (NaN and a reason)
 * returns: VP_OK; VP_ERR_CAPACITY; VP_ERR_RANGE: a NULL text, or an unknown metric or cleaning
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_score_compute(vp_score_metric metric, vp_score_cleaning cleaning, const vp_score_sample *sample,
                                  char *scratch, size_t scratch_bytes, vp_score_outcome *outcome);

VP_EXTERN_C_END
#endif /* VLMPROF_SCORE_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_SCORE_IMPLEMENTATION)) \
    && !defined(VLMPROF_SCORE_IMPLEMENTATION_DONE)
#define VLMPROF_SCORE_IMPLEMENTATION_DONE
#include <math.h>
#include <string.h>
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH

    static const char vp_impl_score_punctuation[] = ";/[]\"{}()=+\\_-><@`,?!";

/* the index of a punctuation character, or -1 */
static int vp_impl_score_punctuation_index(uint32_t code) {
    const char *found = code && code < 0x80 ? strchr(vp_impl_score_punctuation, (int)code) : NULL;
    return found ? (int)(found - vp_impl_score_punctuation) : -1;
}

/* -------------------------------------------------------------------------------------------------------------- output
 * Every text is produced twice. The first pass only counts, so that a buffer that is too small is not touched. */
typedef struct vp_impl_score_text_out { char *out; size_t bytes; } vp_impl_score_text_out; /* out NULL: count */

static void vp_impl_score_text_add(vp_impl_score_text_out *out, const char *text, size_t bytes) {
    if (out->out && bytes) memcpy(out->out + out->bytes, text, bytes);
    out->bytes += bytes;
}

static void vp_impl_score_text_code(vp_impl_score_text_out *out, uint32_t code) {
    char buffer[4];
    vp_impl_score_text_add(out, buffer, vp_unicode_put(buffer, code));
}

/* --------------------------------------------------------------------------------------------------------- cleaning */
static void vp_impl_score_clean(const char *text, vp_impl_score_text_out *out) {
    static const char mark[] = "Answer:";
    const char *start = strstr(text, mark), *end = text + strlen(text), *at, *line_end;
    size_t bytes;
    int gap = 0;
    if (start) { /* up to the next "Answer:" */
        start += sizeof mark - 1;
        at = strstr(start, mark);
        if (at) end = at;
        vp_unicode_strip(&start, &end);
        vp_impl_score_text_add(out, start, (size_t)(end - start));
        return;
    }
    if (strchr(text, '\n')) { /* the last line that is not blank */
        line_end = end;
        for (;;) {
            at = line_end;
            while (at > text && at[-1] != '\n') at--;
            start = at;
            end = line_end;
            vp_unicode_strip(&start, &end);
            if (start < end || at == text) break;
            line_end = at - 1;
        }
        vp_impl_score_text_add(out, start, (size_t)(end - start));
        return;
    }
    start = text;
    vp_unicode_strip(&start, &end);
    for (at = start; at < end; at += bytes) {
        uint32_t code = vp_unicode_get(at, end, &bytes);
        if (vp_unicode_is_space(code)) { gap = 1; continue; }
        if (gap) vp_impl_score_text_add(out, " ", 1);
        gap = 0;
        vp_impl_score_text_add(out, at, bytes);
    }
}

/* counts first, then writes if it fits */
typedef void (*vp_impl_score_text_rule)(const char *, vp_impl_score_text_out *);
static vp_result vp_impl_score_text_produce(vp_impl_score_text_rule produce, const char *text, char *out,
                                            size_t capacity, size_t *needed) {
    vp_impl_score_text_out text_out;
    if (!text || (!out && capacity)) return VP_ERR_RANGE;
    text_out.out = NULL;
    text_out.bytes = 0;
    produce(text, &text_out);
    if (needed) *needed = text_out.bytes;
    if (text_out.bytes >= capacity) return VP_ERR_CAPACITY;
    text_out.out = out;
    text_out.bytes = 0;
    produce(text, &text_out);
    out[text_out.bytes] = 0;
    return VP_OK;
}

VP_API vp_result vp_score_clean(const char *prediction, char *out, size_t capacity, size_t *needed) {
    return vp_impl_score_text_produce(vp_impl_score_clean, prediction, out, capacity, needed);
}

/* ------------------------------------------------------------------------------------------------ VQA normalisation */
/* Whole words, sorted: number words, articles (removed) and contractions. The reference's table also has keys with
 * capitals (Im, Ive ...), which a lower-cased text never contains, and keys that map to themselves. */
typedef struct vp_impl_score_word { const char *from, *to; } vp_impl_score_word;
static const vp_impl_score_word vp_impl_score_words[] = {
    {"'ow'sat", "'ow's'at"}, {"'ows'at", "'ow's'at"}, {"a", ""}, {"aint", "ain't"}, {"an", ""}, {"arent", "aren't"},
    {"cant", "can't"}, {"couldn'tve", "couldn't've"}, {"couldnt", "couldn't"}, {"couldnt've", "couldn't've"},
    {"couldve", "could've"}, {"didnt", "didn't"}, {"doesnt", "doesn't"}, {"dont", "don't"}, {"eight", "8"},
    {"five", "5"}, {"four", "4"}, {"hadn'tve", "hadn't've"}, {"hadnt", "hadn't"}, {"hadnt've", "hadn't've"},
    {"hasnt", "hasn't"}, {"havent", "haven't"}, {"he'dve", "he'd've"}, {"hed", "he'd"}, {"hed've", "he'd've"},
    {"hes", "he's"}, {"howd", "how'd"}, {"howll", "how'll"}, {"hows", "how's"}, {"isnt", "isn't"},
    {"it'dve", "it'd've"}, {"itd", "it'd"}, {"itd've", "it'd've"}, {"itll", "it'll"}, {"maam", "ma'am"},
    {"mightn'tve", "mightn't've"}, {"mightnt", "mightn't"}, {"mightnt've", "mightn't've"}, {"mightve", "might've"},
    {"mustnt", "mustn't"}, {"mustve", "must've"}, {"neednt", "needn't"}, {"nine", "9"}, {"none", "0"},
    {"notve", "not've"}, {"oclock", "o'clock"}, {"one", "1"}, {"oughtnt", "oughtn't"}, {"ow's'at", "'ow's'at"},
    {"seven", "7"}, {"shant", "shan't"}, {"she'dve", "she'd've"}, {"shed've", "she'd've"},
    {"shouldn'tve", "shouldn't've"}, {"shouldnt", "shouldn't"}, {"shouldnt've", "shouldn't've"},
    {"shouldve", "should've"}, {"six", "6"}, {"somebody'd", "somebodyd"}, {"somebody'dve", "somebody'd've"},
    {"somebodyd've", "somebody'd've"}, {"somebodyll", "somebody'll"}, {"somebodys", "somebody's"},
    {"someone'dve", "someone'd've"}, {"someoned", "someone'd"}, {"someoned've", "someone'd've"},
    {"someonell", "someone'll"}, {"someones", "someone's"}, {"something'dve", "something'd've"},
    {"somethingd", "something'd"}, {"somethingd've", "something'd've"}, {"somethingll", "something'll"}, {"ten", "10"},
    {"thats", "that's"}, {"the", ""}, {"there'dve", "there'd've"}, {"thered", "there'd"}, {"thered've", "there'd've"},
    {"therere", "there're"}, {"theres", "there's"}, {"they'dve", "they'd've"}, {"theyd", "they'd"},
    {"theyd've", "they'd've"}, {"theyll", "they'll"}, {"theyre", "they're"}, {"theyve", "they've"}, {"three", "3"},
    {"twas", "'twas"}, {"two", "2"}, {"wasnt", "wasn't"}, {"we'dve", "we'd've"}, {"wed've", "we'd've"},
    {"werent", "weren't"}, {"weve", "we've"}, {"whatll", "what'll"}, {"whatre", "what're"}, {"whats", "what's"},
    {"whatve", "what've"}, {"whens", "when's"}, {"whered", "where'd"}, {"wheres", "where's"}, {"whereve", "where've"},
    {"who'dve", "who'd've"}, {"whod", "who'd"}, {"whod've", "who'd've"}, {"wholl", "who'll"}, {"whos", "who's"},
    {"whove", "who've"}, {"whyll", "why'll"}, {"whyre", "why're"}, {"whys", "why's"}, {"wont", "won't"},
    {"wouldn'tve", "wouldn't've"}, {"wouldnt", "wouldn't"}, {"wouldnt've", "wouldn't've"}, {"wouldve", "would've"},
    {"y'all'dve", "y'all'd've"}, {"y'alld've", "y'all'd've"}, {"y'allll", "y'all'll"}, {"yall", "y'all"},
    {"yall'd've", "y'all'd've"}, {"yall'll", "y'all'll"}, {"you'dve", "you'd've"}, {"youd", "you'd"},
    {"youd've", "you'd've"}, {"youll", "you'll"}, {"youre", "you're"}, {"youve", "you've"}, {"zero", "0"}
};
enum { VP_IMPL_SCORE_WORD_COUNT = sizeof vp_impl_score_words / sizeof vp_impl_score_words[0],
       VP_IMPL_SCORE_WORD_BYTES_MAX = 15 };

/* Reads a stripped text one character at a time, lower-cased, with newline and tab as spaces. */
/* deleted: if not NULL, lower-casing follows the punctuation; if NULL, it precedes it */
typedef struct vp_impl_score_lowered {
    const char *text, *at, *end;
    uint32_t pending;
    const unsigned char *deleted;
} vp_impl_score_lowered;

static vp_impl_score_lowered vp_impl_score_lowered_start(const char *text) {
    vp_impl_score_lowered lowered;
    lowered.text = lowered.at = text;
    lowered.end = text + strlen(text);
    lowered.pending = 0;
    lowered.deleted = NULL;
    vp_unicode_strip(&lowered.at, &lowered.end);
    return lowered;
}

static int vp_impl_score_lowered_next(vp_impl_score_lowered *lowered, uint32_t *code) {
    size_t bytes;
    if (lowered->pending) {
        *code = lowered->pending;
        lowered->pending = 0;
        return 1;
    }
    if (lowered->at >= lowered->end) return 0;
    uint32_t character = vp_unicode_get(lowered->at, lowered->end, &bytes);
    if (character == '\n' || character == '\t') character = ' ';
    else if (character == 0x130) {
        character = 'i';
        lowered->pending = 0x307;
    } else if (character == 0x3A3)
        character = vp_unicode_lower_sigma(lowered->text, lowered->at, lowered->end,
                                           lowered->deleted ? vp_impl_score_punctuation : NULL, lowered->deleted);
    else character = vp_unicode_lower(character);
    lowered->at += bytes;
    *code = character;
    return 1;
}

/* Finds the punctuation characters that must be deleted from the whole text (the others become spaces): those next to a
 * space, or all of them if "digit comma digit" occurs anywhere. */
static void vp_impl_score_punctuation_scan(const char *text, unsigned char deleted[sizeof vp_impl_score_punctuation]) {
    vp_impl_score_lowered lowered = vp_impl_score_lowered_start(text);
    uint32_t code, before = 0, before2 = 0;
    int index;
    memset(deleted, 0, sizeof vp_impl_score_punctuation);
    while (vp_impl_score_lowered_next(&lowered, &code)) {
        if (before == ' ' && (index = vp_impl_score_punctuation_index(code)) >= 0) deleted[index] = 1;
        if (code == ' ' && (index = vp_impl_score_punctuation_index(before)) >= 0) deleted[index] = 1;
        if (before == ',' && vp_unicode_is_digit(before2) && vp_unicode_is_digit(code)) {
            memset(deleted, 1, sizeof vp_impl_score_punctuation);
            return;
        }
        before2 = before;
        before = code;
    }
}

/* collects a word; a word longer than any in the table is written at once */
typedef struct vp_impl_score_word_out {
    vp_impl_score_text_out *out;
    char word[VP_IMPL_SCORE_WORD_BYTES_MAX + 5];
    size_t bytes;
    int any, flowing; /* a word was written before; the current one is being written */
} vp_impl_score_word_out;

static void vp_impl_score_word_begin(vp_impl_score_word_out *collector) {
    if (collector->any) vp_impl_score_text_add(collector->out, " ", 1);
    collector->any = 1;
}

static void vp_impl_score_word_end(vp_impl_score_word_out *collector) {
    size_t low = 0, high = VP_IMPL_SCORE_WORD_COUNT;
    const char *text = collector->word;
    if (!collector->flowing && collector->bytes) {
        collector->word[collector->bytes] = 0;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            int order = strcmp(collector->word, vp_impl_score_words[middle].from);
            if (order == 0) { text = vp_impl_score_words[middle].to; break; }
            if (order < 0) high = middle;
            else low = middle + 1;
        }
        if (*text) {
            vp_impl_score_word_begin(collector);
            vp_impl_score_text_add(collector->out, text, strlen(text));
        }
    }
    collector->bytes = 0;
    collector->flowing = 0;
}

static void vp_impl_score_word_code(vp_impl_score_word_out *collector, uint32_t code) {
    if (vp_unicode_is_space(code)) {
        vp_impl_score_word_end(collector);
        return;
    }
    if (!collector->flowing) {
        collector->bytes += vp_unicode_put(collector->word + collector->bytes, code);
        if (collector->bytes <= VP_IMPL_SCORE_WORD_BYTES_MAX) return;
        vp_impl_score_word_begin(collector);
        vp_impl_score_text_add(collector->out, collector->word, collector->bytes);
        collector->flowing = 1;
        return;
    }
    vp_impl_score_text_code(collector->out, code);
}

static void vp_impl_score_normalise_by(const char *text, vp_impl_score_text_out *out, int lower_last) {
    unsigned char deleted[sizeof vp_impl_score_punctuation];
    vp_impl_score_lowered lowered = vp_impl_score_lowered_start(text);
    vp_impl_score_word_out collector;
    uint32_t code;
    int index, period = 0, periods_dropped = 0;
    memset(&collector, 0, sizeof collector);
    collector.out = out;
    vp_impl_score_punctuation_scan(text, deleted);
    if (lower_last) lowered.deleted = deleted;
    while (vp_impl_score_lowered_next(&lowered, &code)) {
        index = vp_impl_score_punctuation_index(code);
        if (index >= 0 && deleted[index]) continue;
        if (index >= 0) code = ' ';
        /* kept before a digit, else dropped: the reference mistypes its lookbehind, and passes its flag as the count,
         * 32 */
        if (period) {
            if (vp_unicode_is_digit(code) || periods_dropped == 32) vp_impl_score_word_code(&collector, '.');
            else periods_dropped++;
        }
        period = code == '.';
        if (!period) vp_impl_score_word_code(&collector, code);
    }
    if (period && periods_dropped == 32) vp_impl_score_word_code(&collector, '.');
    vp_impl_score_word_end(&collector);
}

static void vp_impl_score_normalise(const char *text, vp_impl_score_text_out *out) {
    vp_impl_score_normalise_by(text, out, 0);
}
static void vp_impl_score_normalise_late(const char *text, vp_impl_score_text_out *out) {
    vp_impl_score_normalise_by(text, out, 1);
}
VP_API vp_result vp_score_vqa_normalise(const char *text, char *out, size_t capacity, size_t *needed) {
    return vp_impl_score_text_produce(vp_impl_score_normalise, text, out, capacity, needed);
}
VP_API vp_result vp_score_vqa_normalise_official(const char *text, char *out, size_t capacity, size_t *needed) {
    return vp_impl_score_text_produce(vp_impl_score_normalise_late, text, out, capacity, needed);
}

VP_API vp_result vp_score_vqa_seed(const char *prediction, const char *const *references, size_t reference_count,
                                   char *scratch, size_t scratch_bytes, double *score) {
    size_t bytes = 0, other = 0, matches = 0, i;
    if (!prediction || (!references && reference_count) || !scratch || !score) return VP_ERR_RANGE;
    vp_result result = vp_score_vqa_normalise(prediction, scratch, scratch_bytes, &bytes);
    for (i = 0; i < reference_count && result == VP_OK; i++) {
        char *second = scratch + bytes + 1;
        size_t left = scratch_bytes - bytes - 1;
        if (!references[i]) return VP_ERR_RANGE;
        result = vp_score_vqa_normalise(references[i], second, left, &other);
        if (other != bytes) result = VP_OK; /* a text with a different length never matches, even if it does not fit */
        else if (result == VP_OK && memcmp(scratch, second, bytes) == 0) matches++;
    }
    if (result != VP_OK) return result;
    *score = matches >= 3 ? 1.0 : (double)matches / 3.0;
    return VP_OK;
}

/* ------------------------------------------------------------------------------------------------------ working memory
 * Rules work in the caller's scratch: a pool that only grows. If something does not fit, `full` is set and the text is
 * empty, so that a rule can run to its end and then return VP_ERR_CAPACITY. */
typedef struct vp_impl_score_pool { char *next; size_t left; int full; } vp_impl_score_pool;
typedef struct vp_impl_score_span { const char *text; size_t bytes; } vp_impl_score_span;

static vp_impl_score_pool vp_impl_score_pool_of(char *scratch, size_t scratch_bytes) {
    vp_impl_score_pool pool;
    pool.next = scratch;
    pool.left = scratch ? scratch_bytes : 0;
    pool.full = 0;
    return pool;
}

/* aligned to 8; NULL if it does not fit */
static void *vp_impl_score_take(vp_impl_score_pool *pool, size_t count, size_t element_bytes) {
    const size_t skip = (8 - (size_t)((uintptr_t)pool->next & 7)) & 7;
    if (pool->full || count > (SIZE_MAX - 8) / element_bytes || skip > pool->left
        || count * element_bytes > pool->left - skip) {
        pool->full = 1;
        return NULL;
    }
    void *taken = pool->next + skip;
    pool->next += skip + count * element_bytes;
    pool->left -= skip + count * element_bytes;
    return taken;
}

/* releases all memory taken since `before`, a copy of the pool */
static void vp_impl_score_give_back(vp_impl_score_pool *pool, const vp_impl_score_pool *before) {
    const int full = pool->full;
    *pool = *before;
    pool->full |= full;
}

static vp_impl_score_span vp_impl_score_span_from(const char *start, const char *end) {
    vp_impl_score_span span;
    span.text = start;
    span.bytes = (size_t)(end - start);
    return span;
}
static vp_impl_score_span vp_impl_score_span_of(const char *text) {
    return vp_impl_score_span_from(text, text + strlen(text));
}

static vp_impl_score_span vp_impl_score_trimmed(vp_impl_score_span span) {
    const char *start = span.text, *end = span.text + span.bytes;
    vp_unicode_strip(&start, &end);
    return vp_impl_score_span_from(start, end);
}

/* removes one ASCII character from both ends */
static vp_impl_score_span vp_impl_score_without(vp_impl_score_span span, char dropped) {
    while (span.bytes && span.text[0] == dropped) { span.text++; span.bytes--; }
    while (span.bytes && span.text[span.bytes - 1] == dropped) span.bytes--;
    return span;
}

static int vp_impl_score_same(vp_impl_score_span left, vp_impl_score_span right) {
    return left.bytes == right.bytes && (!left.bytes || !memcmp(left.text, right.text, left.bytes));
}

/* Finds a text in another one, from the front or from the back; NULL if not found. The empty text is found at the front
 * (or at the end). */
static const char *vp_impl_score_search(vp_impl_score_span in, vp_impl_score_span what, int last) {
    if (what.bytes > in.bytes) return NULL;
    for (size_t i = 0; i <= in.bytes - what.bytes; i++) {
        const char *at = in.text + (last ? in.bytes - what.bytes - i : i);
        if (!what.bytes || (*at == what.text[0] && !memcmp(at, what.text, what.bytes))) return at;
    }
    return NULL;
}

static size_t vp_impl_score_length(vp_impl_score_span span) { /* in characters */
    const char *at = span.text, *end = span.text + span.bytes;
    size_t count = 0, bytes;
    for (; at < end; at += bytes, count++) vp_unicode_get(at, end, &bytes);
    return count;
}

static int vp_impl_score_order(vp_impl_score_span left, vp_impl_score_span right) {
    const size_t least = left.bytes < right.bytes ? left.bytes : right.bytes;
    const int order = least ? memcmp(left.text, right.text, least) : 0;
    if (order) return order;
    if (left.bytes != right.bytes) return left.bytes < right.bytes ? -1 : 1;
    /* equal texts are ordered by address */
    return left.text == right.text ? 0 : (uintptr_t)left.text < (uintptr_t)right.text ? -1 : 1;
}

/* heap sort: n log n for any texts */
static void vp_impl_score_sort(vp_impl_score_span *spans, size_t count) {
    size_t start = count / 2, end = count;
    while (end > 1) {
        size_t at, child;
        vp_impl_score_span held;
        if (start > 0) held = spans[--start];
        else {
            held = spans[--end];
            spans[end] = spans[0];
        }
        for (at = start; (child = 2 * at + 1) < end; at = child) {
            if (child + 1 < end && vp_impl_score_order(spans[child], spans[child + 1]) < 0) child++;
            if (vp_impl_score_order(held, spans[child]) >= 0) break;
            spans[at] = spans[child];
        }
        spans[at] = held;
    }
}

/* sorts and removes duplicates; returns the new count */
static size_t vp_impl_score_unique(vp_impl_score_span *spans, size_t count) {
    size_t i, kept = 0;
    vp_impl_score_sort(spans, count);
    for (i = 0; i < count; i++)
        if (!kept || !vp_impl_score_same(spans[kept - 1], spans[i])) spans[kept++] = spans[i];
    return kept;
}

/* ---------------------------------------------------------------------------------------------- case of whole texts */
typedef void (*vp_impl_score_span_rule)(vp_impl_score_span, vp_impl_score_text_out *);
/* the result of a rule, in the pool, with a NUL */
static vp_impl_score_span vp_impl_score_map(vp_impl_score_pool *pool, vp_impl_score_span span,
                                            vp_impl_score_span_rule rule) {
    vp_impl_score_text_out out;
    vp_impl_score_span made;
    out.out = NULL;
    out.bytes = 0;
    rule(span, &out);
    made.text = "";
    made.bytes = 0;
    out.out = (char *)vp_impl_score_take(pool, out.bytes + 1, 1);
    if (!out.out) return made;
    out.bytes = 0;
    rule(span, &out);
    out.out[out.bytes] = 0;
    made.text = out.out;
    made.bytes = out.bytes;
    return made;
}

/* str.lower */
static void vp_impl_score_lower_rule(vp_impl_score_span span, vp_impl_score_text_out *out) {
    const char *at = span.text, *end = span.text + span.bytes;
    size_t bytes;
    for (; at < end; at += bytes) {
        uint32_t code = vp_unicode_get(at, end, &bytes);
        if (code == 0x130) {
            vp_impl_score_text_code(out, 'i');
            code = 0x307;
        } else code = code == 0x3A3 ? vp_unicode_lower_sigma(span.text, at, end, NULL, NULL) : vp_unicode_lower(code);
        vp_impl_score_text_code(out, code);
    }
}
static vp_impl_score_span vp_impl_score_lower(vp_impl_score_pool *pool, vp_impl_score_span span) {
    return vp_impl_score_map(pool, span, vp_impl_score_lower_rule);
}

/* Characters for which str.upper is not the reversed table of lower case: {character, up to three others}. U+1F80 to
 * U+1FAF follow a separate rule. */
static const uint16_t vp_impl_score_uppers[][4] = {
    {0xB5, 0x39C}, {0xDF, 'S', 'S'}, {0x131, 'I'}, {0x149, 0x2BC, 'N'}, {0x17F, 'S'}, {0x1C5, 0x1C4}, {0x1C8, 0x1C7},
    {0x1CB, 0x1CA}, {0x1F0, 'J', 0x30C}, {0x1F2, 0x1F1}, {0x345, 0x399}, {0x390, 0x399, 0x308, 0x301},
    {0x3B0, 0x3A5, 0x308, 0x301}, {0x3C2, 0x3A3}, {0x3D0, 0x392}, {0x3D1, 0x398}, {0x3D5, 0x3A6}, {0x3D6, 0x3A0},
    {0x3F0, 0x39A}, {0x3F1, 0x3A1}, {0x3F5, 0x395}, {0x587, 0x535, 0x552}, {0x1C80, 0x412}, {0x1C81, 0x414},
    {0x1C82, 0x41E}, {0x1C83, 0x421}, {0x1C84, 0x422}, {0x1C85, 0x422}, {0x1C86, 0x42A}, {0x1C87, 0x462},
    {0x1C88, 0xA64A}, {0x1E96, 'H', 0x331}, {0x1E97, 'T', 0x308}, {0x1E98, 'W', 0x30A}, {0x1E99, 'Y', 0x30A},
    {0x1E9A, 'A', 0x2BE}, {0x1E9B, 0x1E60}, {0x1F50, 0x3A5, 0x313}, {0x1F52, 0x3A5, 0x313, 0x300},
    {0x1F54, 0x3A5, 0x313, 0x301}, {0x1F56, 0x3A5, 0x313, 0x342}, {0x1FB2, 0x1FBA, 0x399}, {0x1FB3, 0x391, 0x399},
    {0x1FB4, 0x386, 0x399}, {0x1FB6, 0x391, 0x342}, {0x1FB7, 0x391, 0x342, 0x399}, {0x1FBC, 0x391, 0x399},
    {0x1FBE, 0x399}, {0x1FC2, 0x1FCA, 0x399}, {0x1FC3, 0x397, 0x399}, {0x1FC4, 0x389, 0x399}, {0x1FC6, 0x397, 0x342},
    {0x1FC7, 0x397, 0x342, 0x399}, {0x1FCC, 0x397, 0x399}, {0x1FD2, 0x399, 0x308, 0x300}, {0x1FD3, 0x399, 0x308, 0x301},
    {0x1FD6, 0x399, 0x342}, {0x1FD7, 0x399, 0x308, 0x342}, {0x1FE2, 0x3A5, 0x308, 0x300}, {0x1FE3, 0x3A5, 0x308, 0x301},
    {0x1FE4, 0x3A1, 0x313}, {0x1FE6, 0x3A5, 0x342}, {0x1FE7, 0x3A5, 0x308, 0x342}, {0x1FF2, 0x1FFA, 0x399},
    {0x1FF3, 0x3A9, 0x399}, {0x1FF4, 0x38F, 0x399}, {0x1FF6, 0x3A9, 0x342}, {0x1FF7, 0x3A9, 0x342, 0x399},
    {0x1FFC, 0x3A9, 0x399}, {0xFB00, 'F', 'F'}, {0xFB01, 'F', 'I'}, {0xFB02, 'F', 'L'}, {0xFB03, 'F', 'F', 'I'},
    {0xFB04, 'F', 'F', 'L'}, {0xFB05, 'S', 'T'}, {0xFB06, 'S', 'T'}, {0xFB13, 0x544, 0x546}, {0xFB14, 0x544, 0x535},
    {0xFB15, 0x544, 0x53B}, {0xFB16, 0x54E, 0x546}, {0xFB17, 0x544, 0x53D}
};
enum { VP_IMPL_SCORE_UPPER_COUNT = sizeof vp_impl_score_uppers / sizeof vp_impl_score_uppers[0] };

/* str.upper */
static void vp_impl_score_upper_rule(vp_impl_score_span span, vp_impl_score_text_out *out) {
    const char *at = span.text, *end = span.text + span.bytes;
    size_t bytes, i, k;
    for (; at < end; at += bytes) {
        uint32_t code = vp_unicode_get(at, end, &bytes);
        if (code < 0x80) {
            vp_impl_score_text_code(out, code >= 'a' && code <= 'z' ? code - 32 : code);
            continue;
        }
        if (code >= 0x1F80 && code <= 0x1FAF) { /* the iota subscript becomes a separate iota */
            vp_impl_score_text_code(out, (code < 0x1F90 ? 0x1F08u : code < 0x1FA0 ? 0x1F28u : 0x1F68u) + (code & 7));
            vp_impl_score_text_code(out, 0x399);
            continue;
        }
        for (i = 0; i < VP_IMPL_SCORE_UPPER_COUNT && vp_impl_score_uppers[i][0] != code; i++) {}
        if (i < VP_IMPL_SCORE_UPPER_COUNT) {
            for (k = 1; k < 4 && vp_impl_score_uppers[i][k]; k++)
                vp_impl_score_text_code(out, vp_impl_score_uppers[i][k]);
            continue;
        }
        vp_impl_score_text_code(out, vp_unicode_upper(code));
    }
}


/* -------------------------------------------------------------------------- numbers as Python reads and rounds them */
/* Prepares a text as float() does: digits and spaces of all scripts become ASCII, ends are stripped, underscores
 * between digits are removed. Returns 0 if a character cannot be part of a number. `out` must have room for the
 * text. */
static int vp_impl_score_float_text(vp_impl_score_span span, char *out, size_t *out_bytes) {
    const char *at = span.text, *end = span.text + span.bytes;
    size_t bytes, i, first = 0, count = 0, kept = 0;
    for (; at < end; at += bytes) {
        uint32_t code = vp_unicode_get(at, end, &bytes);
        if (code >= 0x80) {
            if (vp_unicode_is_digit(code)) code = '0' + (uint32_t)vp_unicode_digit(code);
            else if (vp_unicode_is_space(code)) code = ' ';
            else return 0;
        }
        out[count++] = (char)code;
    }
    /* float() does not strip 28 to 31 */
    while (first < count && (out[first] == ' ' || (out[first] >= 9 && out[first] <= 13))) first++;
    while (count > first && (out[count - 1] == ' ' || (out[count - 1] >= 9 && out[count - 1] <= 13))) count--;
    for (i = first; i < count; i++) {
        if (out[i] != '_') out[kept++] = out[i];
        else if (i == first || i + 1 == count || out[i - 1] < '0' || out[i - 1] > '9' || out[i + 1] < '0'
                 || out[i + 1] > '9')
            return 0;
    }
    *out_bytes = kept;
    return 1;
}

/* Converts [digits][.digits][e[+-]digits] to a JSON number: no leading zeros, digits on both sides of the point. `out`
 * must have room for two more bytes. */
static int vp_impl_score_json_number(const char *at, const char *end, char *out, size_t *out_bytes) {
    const char *whole = at, *whole_end, *fraction, *fraction_end;
    size_t used = 0;
    while (at < end && *at >= '0' && *at <= '9') at++;
    whole_end = fraction = fraction_end = at;
    if (at < end && *at == '.') {
        fraction = ++at;
        while (at < end && *at >= '0' && *at <= '9') at++;
        fraction_end = at;
    }
    if (whole == whole_end && fraction == fraction_end) return 0;
    while (whole < whole_end && *whole == '0') whole++;
    if (whole == whole_end) out[used++] = '0';
    while (whole < whole_end) out[used++] = *whole++;
    if (fraction < fraction_end) out[used++] = '.';
    while (fraction < fraction_end) out[used++] = *fraction++;
    if (at < end && (*at == 'e' || *at == 'E')) {
        out[used++] = *at++;
        if (at < end && (*at == '+' || *at == '-')) out[used++] = *at++;
        if (at == end) return 0;
        while (at < end && *at >= '0' && *at <= '9') out[used++] = *at++;
        if (out[used - 1] < '0' || out[used - 1] > '9') return 0;
    }
    *out_bytes = used;
    return at == end;
}

static int vp_impl_score_is_word(const char *text, size_t bytes, const char *lower) { /* ASCII, any case */
    size_t i;
    if (strlen(lower) != bytes) return 0;
    for (i = 0; i < bytes; i++) if ((text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]) != lower[i]) return 0;
    return 1;
}

/* float(text). Returns 1 and the value, or 0 if Python raises ValueError. */
static int vp_impl_score_float(vp_impl_score_pool *pool, vp_impl_score_span span, double *value) {
    const vp_impl_score_pool before = *pool;
    char *text = (char *)vp_impl_score_take(pool, span.bytes + 1, 1),
         *number = (char *)vp_impl_score_take(pool, span.bytes + 3, 1);
    size_t bytes = 0, number_bytes = 0;
    double magnitude = 0;
    int good = text && number && vp_impl_score_float_text(span, text, &bytes),
        negative = good && bytes && text[0] == '-';
    if (good && bytes && (text[0] == '-' || text[0] == '+')) {
        text++;
        bytes--;
    }
    if (good && (vp_impl_score_is_word(text, bytes, "inf") || vp_impl_score_is_word(text, bytes, "infinity")))
        magnitude = HUGE_VAL;
    else if (good && vp_impl_score_is_word(text, bytes, "nan")) magnitude = (double)NAN;
    else if (good && (good = vp_impl_score_json_number(text, text + bytes, number, &number_bytes)) != 0) {
        if (vp_number_parse(number, number_bytes, &magnitude) == VP_ERR_RANGE) magnitude = HUGE_VAL;
    }
    vp_impl_score_give_back(pool, &before);
    if (good) *value = negative ? -magnitude : magnitude;
    return good;
}

/* All decimal digits of a finite value without its sign. digits[0 .. *point) are the integer part, which may begin
 * with zeros. */
enum { VP_IMPL_SCORE_DIGITS = 1120 }; /* 17 for the mantissa and 1074 halvings; 309 for large values */
static size_t vp_impl_score_digits(double value, unsigned char *digits, size_t *point) {
    int exponent = 0, i;
    uint64_t mantissa = (uint64_t)ldexp(frexp(fabs(value), &exponent), 53), rest;
    size_t count = 0, k;
    exponent -= 53;
    while (mantissa && !(mantissa & 1)) { mantissa >>= 1; exponent++; }
    for (rest = mantissa; rest; rest /= 10) count++;
    for (rest = mantissa, k = count; k > 0; rest /= 10) digits[--k] = (unsigned char)(rest % 10);
    for (i = 0; i < exponent && mantissa; i++) { /* doubled */
        int carry = 0;
        for (k = count; k > 0; k--) {
            carry += digits[k - 1] * 2;
            digits[k - 1] = (unsigned char)(carry % 10);
            carry /= 10;
        }
        if (!carry) continue;
        memmove(digits + 1, digits, count++);
        digits[0] = 1;
    }
    *point = count;
    for (i = 0; i > exponent; i--) { /* halved */
        int carry = 0;
        for (k = 0; k < count; k++) {
            carry = carry * 10 + digits[k];
            digits[k] = (unsigned char)(carry / 2);
            carry &= 1;
        }
        if (carry) digits[count++] = 5;
    }
    return count;
}

/* The digits of the integer nearest to value * 10^places, ties to even, without leading zeros; zero has 0 digits.
 * `text` must have room for VP_IMPL_SCORE_DIGITS. */
static size_t vp_impl_score_round_digits(double value, int64_t places, char *text) {
    unsigned char digits[VP_IMPL_SCORE_DIGITS];
    size_t point, count = vp_impl_score_digits(value, digits, &point), keep, i, used = 0;
    int up = 0;
    if (places < 0 && (uint64_t)-places > point) return 0;
    keep = places < 0 ? point - (size_t)-places : point + (size_t)places;
    if (keep < count) {
        for (i = keep + 1; i < count && !digits[i]; i++) {}
        up = digits[keep] > 5 || (digits[keep] == 5 && (i < count || (keep && digits[keep - 1] % 2)));
    }
    for (i = keep; up && i > 0; i--) { /* keep < count here */
        if (digits[i - 1] == 9) digits[i - 1] = 0;
        else { digits[i - 1]++; up = 0; }
    }
    if (up) text[used++] = '1';
    for (i = 0; i < keep; i++)
        if (used || (i < count && digits[i])) text[used++] = (char)('0' + (i < count ? digits[i] : 0));
    return used;
}

/* round(value, places) */
static double vp_impl_score_round(double value, int64_t places) {
    char text[VP_IMPL_SCORE_DIGITS + 400]; /* digits, then "e" and the places */
    double rounded = 0;
    if (!(fabs(value) < HUGE_VAL) || places > 323) return value;
    if (places < -308) return value < 0 || (value == 0 && 1 / value < 0) ? -0.0 : 0.0;
    size_t used = vp_impl_score_round_digits(value, places, text);
    if (used) {
        uint64_t power = (uint64_t)(places < 0 ? -places : places);
        text[used++] = 'e';
        text[used++] = places > 0 ? '-' : '+';
        text[used++] = (char)('0' + power / 100);
        text[used++] = (char)('0' + power / 10 % 10);
        text[used++] = (char)('0' + power % 10);
        if (vp_number_parse(text, used, &rounded) != VP_OK) return value; /* overflow, where Python raises an error */
    }
    return value < 0 || (value == 0 && 1 / value < 0) ? -rounded : rounded;
}

/* ---------------------------------------------------------------------------------------------------- edit distance */
static uint32_t *vp_impl_score_codes(vp_impl_score_pool *pool, vp_impl_score_span span, size_t *count) {
    const char *at = span.text, *end = span.text + span.bytes;
    uint32_t *codes = (uint32_t *)vp_impl_score_take(pool, span.bytes + 1, sizeof *codes);
    size_t bytes;
    *count = 0;
    for (; codes && at < end; at += bytes) codes[(*count)++] = vp_unicode_get(at, end, &bytes);
    return codes;
}

static size_t vp_impl_score_distance(vp_impl_score_pool *pool, vp_impl_score_span first, vp_impl_score_span second) {
    const vp_impl_score_pool before = *pool;
    size_t first_count, second_count, i, j, distance = 0, *row;
    if (first.bytes < second.bytes) { vp_impl_score_span held = first; first = second; second = held; }
    uint32_t *first_codes = vp_impl_score_codes(pool, first, &first_count);
    uint32_t *second_codes = vp_impl_score_codes(pool, second, &second_count);
    while (first_count && second_count && first_codes[0] == second_codes[0]) {
        first_codes++;
        second_codes++;
        first_count--;
        second_count--;
    }
    while (first_count && second_count && first_codes[first_count - 1] == second_codes[second_count - 1]) {
        first_count--;
        second_count--;
    }
    row = (size_t *)vp_impl_score_take(pool, second_count + 1, sizeof *row);
    if (row) {
        for (j = 0; j <= second_count; j++) row[j] = j;
        for (i = 0; i < first_count; i++) {
            size_t corner = i, best;
            row[0] = i + 1;
            for (j = 0; j < second_count; j++) {
                best = corner + (first_codes[i] != second_codes[j]);
                corner = row[j + 1];
                if (corner + 1 < best) best = corner + 1;
                if (row[j] + 1 < best) best = row[j] + 1;
                row[j + 1] = best;
            }
        }
        distance = row[second_count];
    }
    vp_impl_score_give_back(pool, &before);
    return distance;
}

VP_API size_t vp_score_scratch_bytes(size_t text_bytes, size_t text_count) {
    if (text_bytes > (SIZE_MAX - 4096) / 64 || text_count > (SIZE_MAX - 4096) / 256) return SIZE_MAX;
    return 32 * text_bytes > SIZE_MAX - 4096 - 128 * text_count ? SIZE_MAX : 32 * text_bytes + 128 * text_count + 4096;
}

/* ----------------------------------------------------------------------------------------- cleaning, the second
 * rule */
/* " ".join(text.split()) */
static void vp_impl_score_collapse_rule(vp_impl_score_span span, vp_impl_score_text_out *out) {
    const char *at, *end;
    size_t bytes;
    int gap = 0;
    span = vp_impl_score_trimmed(span);
    for (at = span.text, end = span.text + span.bytes; at < end; at += bytes) {
        if (vp_unicode_is_space(vp_unicode_get(at, end, &bytes))) { gap = 1; continue; }
        if (gap) vp_impl_score_text_add(out, " ", 1);
        gap = 0;
        vp_impl_score_text_add(out, at, bytes);
    }
}

/* The most frequent line of a stripped text; of equally frequent lines, the first. */
static vp_impl_score_span vp_impl_score_frequent_line(vp_impl_score_pool *pool, vp_impl_score_span span) {
    const char *at, *end = span.text + span.bytes, *line;
    size_t count = 1, i, first, best_count = 0;
    vp_impl_score_span *lines, best = span;
    for (at = span.text; at < end; at++) count += *at == '\n';
    lines = (vp_impl_score_span *)vp_impl_score_take(pool, count, sizeof *lines);
    for (i = 0, line = span.text; lines && i < count; i++) {
        const char *stop = (const char *)memchr(line, '\n', (size_t)(end - line));
        if (!stop) stop = end;
        lines[i] = vp_impl_score_map(pool, vp_impl_score_span_from(line, stop), vp_impl_score_collapse_rule);
        line = stop + 1;
    }
    if (!lines || pool->full) return best;
    vp_impl_score_sort(lines, count);
    for (first = 0; first < count; first = i) {
        for (i = first + 1; i < count && vp_impl_score_same(lines[first], lines[i]); i++) {}
        /* the first entry of a run is also the first in the text */
        if (i - first < best_count || (i - first == best_count && (uintptr_t)lines[first].text > (uintptr_t)best.text))
            continue;
        best_count = i - first;
        best = lines[first];
    }
    return best;
}

static vp_impl_score_span vp_impl_score_clean_frequent(vp_impl_score_pool *pool, const char *text) {
    static const char mark[] = "Answer:";
    vp_impl_score_span span = vp_impl_score_trimmed(vp_impl_score_span_of(text)),
                       mark_span = vp_impl_score_span_of(mark);
    const char *start = vp_impl_score_search(span, mark_span, 0), *end = span.text + span.bytes, *next;
    if (start) { /* as in the first rule */
        start += mark_span.bytes;
        next = vp_impl_score_search(vp_impl_score_span_from(start, end), mark_span, 0);
        return vp_impl_score_trimmed(vp_impl_score_span_from(start, next ? next : end));
    }
    return span.bytes && memchr(span.text, '\n', span.bytes)
               ? vp_impl_score_frequent_line(pool, span)
               : vp_impl_score_map(pool, span, vp_impl_score_collapse_rule);
}

VP_API vp_result vp_score_clean_frequent(const char *prediction, char *scratch, size_t scratch_bytes, char *out,
                                         size_t capacity, size_t *needed) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    if (!prediction || (!out && capacity)) return VP_ERR_RANGE;
    vp_impl_score_span cleaned = vp_impl_score_clean_frequent(&pool, prediction);
    if (pool.full) return VP_ERR_CAPACITY;
    if (needed) *needed = cleaned.bytes;
    if (cleaned.bytes >= capacity) return VP_ERR_CAPACITY;
    if (cleaned.bytes) memcpy(out, cleaned.text, cleaned.bytes);
    out[cleaned.bytes] = 0;
    return VP_OK;
}

/* ----------------------------------------------------------------------------------------- rules against references */
/* `prepare` processes the prediction and every reference; `add` gets both and adds one reference's contribution. */
typedef vp_impl_score_span (*vp_impl_score_prepare)(vp_impl_score_pool *, const char *);
static vp_impl_score_span vp_impl_score_lower_trimmed(vp_impl_score_pool *pool, const char *text) {
    return vp_impl_score_lower(pool, vp_impl_score_trimmed(vp_impl_score_span_of(text)));
}
static vp_impl_score_span vp_impl_score_lower_all(vp_impl_score_pool *pool, const char *text) {
    return vp_impl_score_lower(pool, vp_impl_score_span_of(text));
}
static void vp_impl_score_normalise_rule(vp_impl_score_span span, vp_impl_score_text_out *out) {
    vp_impl_score_normalise(span.text, out);
}
static void vp_impl_score_late_rule(vp_impl_score_span span, vp_impl_score_text_out *out) {
    vp_impl_score_normalise_late(span.text, out);
}
static vp_impl_score_span vp_impl_score_normalised(vp_impl_score_pool *pool, const char *text) {
    return vp_impl_score_map(pool, vp_impl_score_span_of(text), vp_impl_score_normalise_rule);
}

static int vp_impl_score_arguments(const char *prediction, const char *const *references, size_t count,
                                   const char *scratch, const void *out) {
    if (!prediction || (!references && count) || !scratch || !out) return 0;
    for (size_t i = 0; i < count; i++) if (!references[i]) return 0;
    return 1;
}

/* counts the references that equal the prediction */
static vp_result vp_impl_score_matches(const char *prediction, const char *const *references, size_t count,
                                       vp_impl_score_prepare prepare, char *scratch, size_t scratch_bytes,
                                       size_t *matches) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes), before;
    size_t i, found = 0;
    vp_impl_score_span wanted = prepare(&pool, prediction);
    for (i = 0; i < count; i++) {
        before = pool;
        found += (size_t)vp_impl_score_same(prepare(&pool, references[i]), wanted);
        vp_impl_score_give_back(&pool, &before);
    }
    if (pool.full) return VP_ERR_CAPACITY;
    *matches = found;
    return VP_OK;
}

/* 1 if at least `whole` references equal the prediction, else their number divided by `whole` */
static vp_result vp_impl_score_share(const char *prediction, const char *const *references, size_t count, size_t whole,
                                     vp_impl_score_prepare prepare, char *scratch, size_t scratch_bytes,
                                     double *score) {
    size_t matches = 0;
    if (!vp_impl_score_arguments(prediction, references, count, scratch, score)) return VP_ERR_RANGE;
    vp_result result = vp_impl_score_matches(prediction, references, count, prepare, scratch, scratch_bytes, &matches);
    if (result == VP_OK) *score = matches >= whole ? 1.0 : (double)matches / (double)whole;
    return result;
}

VP_API vp_result vp_score_em(const char *prediction, const char *const *references, size_t reference_count,
                             char *scratch, size_t scratch_bytes, double *score) {
    return vp_impl_score_share(prediction, references, reference_count, 1, vp_impl_score_lower_trimmed, scratch,
                               scratch_bytes, score);
}

VP_API vp_result vp_score_em_unstripped(const char *prediction, const char *const *references, size_t reference_count,
                                        char *scratch, size_t scratch_bytes, double *score) {
    return vp_impl_score_share(prediction, references, reference_count, 1, vp_impl_score_lower_all, scratch,
                               scratch_bytes, score);
}

VP_API vp_result vp_score_a_okvqa(const char *prediction, const char *const *references, size_t reference_count,
                                  char *scratch, size_t scratch_bytes, double *score) {
    return vp_impl_score_share(prediction, references, reference_count, 3, vp_impl_score_lower_trimmed, scratch,
                               scratch_bytes, score);
}

/* newlines and tabs become spaces, and the text is stripped */
static void vp_impl_score_official_rule(vp_impl_score_span span, vp_impl_score_text_out *out) {
    span = vp_impl_score_trimmed(span);
    for (size_t i = 0; i < span.bytes; i++)
        vp_impl_score_text_add(out, span.text[i] == '\n' || span.text[i] == '\t' ? " " : span.text + i, 1);
}

static void vp_impl_score_strip_text(const char *text, vp_impl_score_text_out *out) {
    vp_impl_score_official_rule(vp_impl_score_span_of(text), out);
}
VP_API vp_result vp_score_vqa_strip(const char *text, char *out, size_t capacity, size_t *needed) {
    return vp_impl_score_text_produce(vp_impl_score_strip_text, text, out, capacity, needed);
}

VP_API vp_result vp_score_vqa_official(const char *prediction, const char *const *references, size_t reference_count,
                                       char *scratch, size_t scratch_bytes, double *score) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes), before;
    vp_impl_score_span first, wanted, one;
    size_t i, matches = 0, others;
    int identical = 1;
    if (!vp_impl_score_arguments(prediction, references, reference_count, scratch, score)) return VP_ERR_RANGE;
    if (!reference_count) return VP_ERR_MISMATCH;
    first = vp_impl_score_map(&pool, vp_impl_score_span_of(references[0]), vp_impl_score_official_rule);
    for (i = 1; i < reference_count && identical; i++) {
        before = pool;
        identical = vp_impl_score_same(
            first, vp_impl_score_map(&pool, vp_impl_score_span_of(references[i]), vp_impl_score_official_rule));
        vp_impl_score_give_back(&pool, &before);
    }
    wanted = vp_impl_score_map(&pool, vp_impl_score_span_of(prediction),
                               identical ? vp_impl_score_official_rule : vp_impl_score_late_rule);
    for (i = 0; i < reference_count; i++) {
        before = pool;
        one =
            identical ? first : vp_impl_score_map(&pool, vp_impl_score_span_of(references[i]), vp_impl_score_late_rule);
        matches += (size_t)vp_impl_score_same(one, wanted);
        vp_impl_score_give_back(&pool, &before);
    }
    if (pool.full) return VP_ERR_CAPACITY;
    others = matches ? matches - 1 : 0; /* matches among the others: excludes the matching reference itself */
    double sum = (double)matches * (others >= 3 ? 1.0 : (double)others / 3.0);
    sum += (double)(reference_count - matches) * (matches >= 3 ? 1.0 : (double)matches / 3.0);
    *score = sum / (double)reference_count;
    return VP_OK;
}

VP_API vp_result vp_score_anls(const char *prediction, const char *const *references, size_t reference_count,
                               char *scratch, size_t scratch_bytes, double *score) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes), before;
    double best = 0, distance;
    if (!vp_impl_score_arguments(prediction, references, reference_count, scratch, score)) return VP_ERR_RANGE;
    size_t wanted_length = vp_impl_score_length(vp_impl_score_span_of(prediction));
    vp_impl_score_span wanted = vp_impl_score_lower_all(&pool, prediction);
    for (size_t i = 0; i < reference_count; i++) {
        size_t length = vp_impl_score_length(vp_impl_score_span_of(references[i]));
        if (length < wanted_length) length = wanted_length;
        if (!length) return VP_ERR_MISMATCH;
        before = pool;
        distance = (double)vp_impl_score_distance(&pool, vp_impl_score_lower_all(&pool, references[i]), wanted)
                   / (double)length;
        if (distance < 0.5 && 1 - distance > best) best = 1 - distance;
        vp_impl_score_give_back(&pool, &before);
    }
    if (pool.full) return VP_ERR_CAPACITY;
    *score = best;
    return VP_OK;
}

/* a number, or a percentage */
static int vp_impl_score_percent(vp_impl_score_pool *pool, vp_impl_score_span span, double *value) {
    const int percent = span.bytes && span.text[span.bytes - 1] == '%';
    while (percent && span.bytes && span.text[span.bytes - 1] == '%') span.bytes--;
    if (!vp_impl_score_float(pool, span, value)) return 0;
    if (percent) *value /= 100.0;
    return 1;
}

VP_API vp_result vp_score_relaxed(const char *prediction, const char *const *references, size_t reference_count,
                                  char *scratch, size_t scratch_bytes, double *score) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes), before;
    double number = 0, target = 0;
    int is_number, correct = 0;
    if (!vp_impl_score_arguments(prediction, references, reference_count, scratch, score)) return VP_ERR_RANGE;
    if (!reference_count) return VP_ERR_MISMATCH;
    is_number = vp_impl_score_percent(&pool, vp_impl_score_span_of(prediction), &number);
    vp_impl_score_span wanted = vp_impl_score_lower_all(&pool, prediction);
    for (size_t i = 0; i < reference_count && !correct; i++) {
        before = pool;
        if (is_number && vp_impl_score_percent(&pool, vp_impl_score_span_of(references[i]), &target) && target != 0)
            correct = fabs(number - target) / fabs(target) <= 0.05; /* false for NaN, and if both are infinite */
        else correct = vp_impl_score_same(vp_impl_score_lower_all(&pool, references[i]), wanted);
        vp_impl_score_give_back(&pool, &before);
    }
    if (pool.full) return VP_ERR_CAPACITY;
    *score = correct;
    return VP_OK;
}

/* the words of a normalised text as a set */
static vp_impl_score_span *vp_impl_score_words_of(vp_impl_score_pool *pool, const char *text, size_t *count) {
    vp_impl_score_span span = vp_impl_score_normalised(pool, text), *words;
    const char *at = span.text, *end = span.text + span.bytes, *word;
    size_t found = 0, most = 1;
    for (; at < end; at++) most += *at == ' ';
    words = (vp_impl_score_span *)vp_impl_score_take(pool, most, sizeof *words);
    for (at = word = span.text; words && at <= end; at++) { /* words are separated by single spaces */
        if (at < end && *at != ' ') continue;
        if (at > word) words[found++] = vp_impl_score_span_from(word, at);
        word = at + 1;
    }
    *count = words ? vp_impl_score_unique(words, found) : 0;
    return words;
}

VP_API vp_result vp_score_caption_jaccard(const char *prediction, const char *const *references, size_t reference_count,
                                          char *scratch, size_t scratch_bytes, double *score) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes), before;
    size_t count, other_count, i, mine, theirs, both;
    double best = 0, overlap;
    if (!vp_impl_score_arguments(prediction, references, reference_count, scratch, score)) return VP_ERR_RANGE;
    vp_impl_score_span *words = vp_impl_score_words_of(&pool, prediction, &count);
    for (i = 0; i < reference_count && count; i++) {
        before = pool;
        vp_impl_score_span *others = vp_impl_score_words_of(&pool, references[i], &other_count);
        for (mine = theirs = both = 0; mine < count && theirs < other_count;) { /* both sorted */
            const size_t least = words[mine].bytes < others[theirs].bytes ? words[mine].bytes : others[theirs].bytes;
            int order = memcmp(words[mine].text, others[theirs].text, least);
            if (!order)
                order = words[mine].bytes < others[theirs].bytes ? -1 : words[mine].bytes > others[theirs].bytes;
            both += !order;
            mine += order <= 0;
            theirs += order >= 0;
        }
        overlap = (double)both / (double)(count + other_count - both);
        if (overlap > best) best = overlap;
        vp_impl_score_give_back(&pool, &before);
    }
    if (pool.full) return VP_ERR_CAPACITY;
    *score = best;
    return VP_OK;
}

/* -------------------------------------------------------------------------------------------------- multiple choice */
/* *is_nearest becomes 1 if the option's text is neither equal nor the only one that contains the prediction */
static vp_result vp_impl_score_select(vp_impl_score_pool *pool, const char *prediction, const char *const *options,
                                      size_t count, int32_t *index, int *is_nearest) {
    const vp_impl_score_pool before = *pool;
    vp_impl_score_span wanted = vp_impl_score_lower_trimmed(pool, prediction), *texts, *sorted;
    size_t i, found = 0, holder = 0, holders = 0, distance, nearest = SIZE_MAX;
    int exact = 0, repeated = 0;
    texts = (vp_impl_score_span *)vp_impl_score_take(pool, count + 1, sizeof *texts);
    sorted = (vp_impl_score_span *)vp_impl_score_take(pool, count + 1, sizeof *sorted);
    for (i = 0; i < count && texts && sorted; i++) sorted[i] = texts[i] = vp_impl_score_lower_trimmed(pool, options[i]);
    if (!pool->full) {
        repeated = vp_impl_score_unique(sorted, count) != count;
        for (i = count; i > 0; i--) { /* the first of equals is kept */
            if (vp_impl_score_same(texts[i - 1], wanted)) { exact = 1; found = i - 1; }
            if (!vp_impl_score_search(texts[i - 1], wanted, 0)) continue;
            holders++;
            holder = i - 1;
        }
        if (!exact && holders == 1) found = holder;
        for (i = 0; i < count && !exact && holders != 1; i++) {
            distance = vp_impl_score_distance(pool, texts[i], wanted);
            if (distance < nearest) { nearest = distance; found = i; }
        }
    }
    vp_impl_score_give_back(pool, &before);
    if (pool->full) return VP_ERR_CAPACITY;
    if (!count || count > INT32_MAX || repeated) return VP_ERR_MISMATCH;
    *index = (int32_t)found;
    *is_nearest = !exact && holders != 1;
    return VP_OK;
}

VP_API vp_result vp_score_option_distance(const char *prediction, const char *option, char *scratch,
                                          size_t scratch_bytes, size_t *distance) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    if (!vp_impl_score_arguments(prediction, &option, 1, scratch, distance)) return VP_ERR_RANGE;
    vp_impl_score_span wanted = vp_impl_score_lower_trimmed(&pool, prediction);
    size_t found = vp_impl_score_distance(&pool, vp_impl_score_lower_trimmed(&pool, option), wanted);
    if (pool.full) return VP_ERR_CAPACITY;
    *distance = found;
    return VP_OK;
}

VP_API vp_result vp_score_select_option(const char *prediction, const char *const *options, size_t option_count,
                                        char *scratch, size_t scratch_bytes, int32_t *index) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    int is_nearest;
    if (!vp_impl_score_arguments(prediction, options, option_count, scratch, index)) return VP_ERR_RANGE;
    return vp_impl_score_select(&pool, prediction, options, option_count, index, &is_nearest);
}

/* the index of the first ASCII capital without a word character on either side; -1 if there is none */
static int32_t vp_impl_score_letter(vp_impl_score_span span) {
    const char *at = span.text, *end = span.text + span.bytes;
    size_t bytes, next;
    int before = 0;
    for (; at < end; at += bytes) {
        const uint32_t code = vp_unicode_get(at, end, &bytes);
        if (code >= 'A' && code <= 'Z' && !before
            && (at + 1 == end || !vp_unicode_is_word(vp_unicode_get(at + 1, end, &next))))
            return (int32_t)(code - 'A');
        before = vp_unicode_is_word(code);
    }
    return -1;
}

/* -------------------------------------------------------------------------------------------- MMMU, multiple choice */
/* The last occurrence of a choice in the response; NULL if there is none. kind: 0 "(A)", 1 " A ", 2 the option's text
 * (both in lower case). */
static const char *vp_impl_score_choice_at(vp_impl_score_pool *pool, vp_impl_score_span response, int kind, int letter,
                                           const char *option) {
    const vp_impl_score_pool before = *pool;
    char mark[3];
    mark[0] = kind ? ' ' : '(';
    mark[1] = (char)('A' + letter);
    mark[2] = kind ? ' ' : ')';
    vp_impl_score_span what = vp_impl_score_span_from(mark, mark + 3);
    if (kind == 2) what = vp_impl_score_lower_all(pool, option);
    const char *at = vp_impl_score_search(response, what, 1);
    vp_impl_score_give_back(pool, &before);
    return at;
}

VP_API vp_result vp_score_mmmu_choice(const char *prediction, const char *const *options, size_t option_count,
                                      char *scratch, size_t scratch_bytes, int32_t *index) {
    static const char stripped[] = ",.!?;:'";
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    const char *text, *end, *last = NULL, *at;
    size_t i, words = 0, bytes;
    int kind, letter, space, before = 1;
    int32_t found = -1;
    if (!vp_impl_score_arguments(prediction, options, option_count, scratch, index)) return VP_ERR_RANGE;
    vp_impl_score_span response = vp_impl_score_span_of(prediction);
    for (i = 0; stripped[i]; i++) response = vp_impl_score_without(response, stripped[i]); /* one pass in this order */
    char *copy = (char *)vp_impl_score_take(&pool, response.bytes + 2, 1);
    if (!copy) return VP_ERR_CAPACITY;
    copy[0] = copy[response.bytes + 1] = ' ';
    if (response.bytes) memcpy(copy + 1, response.text, response.bytes);
    vp_impl_score_span padded = vp_impl_score_span_from(copy, copy + response.bytes + 2);
    vp_impl_score_span lower = vp_impl_score_lower(&pool, padded);
    for (text = padded.text, end = padded.text + padded.bytes; text < end; text += bytes, before = space) {
        space = vp_unicode_is_space(vp_unicode_get(text, end, &bytes));
        words += before && !space;
    }
    for (kind = 0; kind < (words > 5 ? 3 : 2) && found < 0; kind++) {
        last = NULL;
        for (i = 0, letter = 0; i < option_count && letter < 26; i++) {
            if (!options[i][0]) continue; /* empty options get no letter */
            at = vp_impl_score_choice_at(&pool, kind == 2 ? lower : padded, kind, letter, options[i]);
            if (at && (!last || at > last)) { last = at; found = letter; }
            letter++;
        }
    }
    if (pool.full) return VP_ERR_CAPACITY;
    if (found < 0) return VP_ERR_NOT_FOUND;
    *index = found;
    return VP_OK;
}

/* --------------------------------------------------------------------------------------- MMMU, open: numbers in a text
 * The reference's three regular expressions. A number's digits match as a whole or not at all, so no search
 * backtracks. */
static int vp_impl_score_digit_at(const char *at, const char *end, size_t *bytes) {
    return at < end && vp_unicode_is_digit(vp_unicode_get(at, end, bytes));
}
static const char *vp_impl_score_skip_digits(const char *at, const char *end, size_t *count) {
    size_t bytes;
    for (*count = 0; vp_impl_score_digit_at(at, end, &bytes); ++*count) at += bytes;
    return at;
}
static int vp_impl_score_word_at(const char *at, const char *end) {
    size_t bytes;
    return at < end && vp_unicode_is_word(vp_unicode_get(at, end, &bytes));
}
/* the end of an exponent, "e" with digits, at `at`; NULL if there is none */
static const char *vp_impl_score_exponent(const char *at, const char *end) {
    size_t count;
    if (at >= end || (*at != 'e' && *at != 'E')) return NULL;
    at++;
    if (at < end && (*at == '+' || *at == '-')) at++;
    at = vp_impl_score_skip_digits(at, end, &count);
    return count ? at : NULL;
}

/* -?\b\d{1,3}(?:,\d{3})+\b at the first digit; `after_word`: a word character precedes it */
static const char *vp_impl_score_number_commas(const char *at, const char *end, int after_word) {
    size_t count;
    const char *next, *group = NULL, *group_before = NULL;
    at = vp_impl_score_skip_digits(at, end, &count);
    if (after_word || count > 3) return NULL;
    while (at < end && *at == ',') {
        size_t bytes = 0;
        next = at + 1;
        for (count = 0; count < 3 && vp_impl_score_digit_at(next, end, &bytes); count++) next += bytes;
        if (count < 3) break;
        group_before = group;
        group = at = next;
    }
    /* if a word continues after the last group, the match ends before that group */
    return group && vp_impl_score_word_at(group, end) ? group_before : group;
}
/* -?\d+(?:\.\d+)?[eE][+-]?\d+ */
static const char *vp_impl_score_number_scientific(const char *at, const char *end) {
    size_t count;
    at = vp_impl_score_skip_digits(at, end, &count);
    if (at < end && *at == '.') {
        const char *fraction_end = vp_impl_score_skip_digits(at + 1, end, &count);
        if (count) at = fraction_end;
    }
    return vp_impl_score_exponent(at, end);
}
/* -?(?:\d+\.\d+|\.\d+|\d+\b)(?![eE][+-]?\d+)(?![,\d]) at the first digit or the point */
static const char *vp_impl_score_number_simple(const char *at, const char *end) {
    size_t whole, count;
    at = vp_impl_score_skip_digits(at, end, &whole);
    if (at < end && *at == '.') {
        const char *fraction_end = vp_impl_score_skip_digits(at + 1, end, &count);
        if (count && !vp_impl_score_exponent(fraction_end, end) && (fraction_end == end || *fraction_end != ','))
            return fraction_end;
    }
    return whole && !vp_impl_score_word_at(at, end) && (at == end || *at != ',') ? at : NULL;
}

/* Calls `found` for every number of one kind, in text order; returns the count. */
typedef void (*vp_impl_score_number_found)(void *user, vp_impl_score_span number);
static size_t vp_impl_score_find_numbers(vp_impl_score_span span, int kind, vp_impl_score_number_found found,
                                         void *user) {
    const char *at = span.text, *end = span.text + span.bytes, *start, *stop;
    size_t bytes, count = 0, skipped;
    int after_word = 0;
    while (at < end) {
        const uint32_t code = vp_unicode_get(at, end, &bytes);
        start = at;
        if (code == '-' || !(vp_unicode_is_digit(code) || (code == '.' && kind == 2))) {
            after_word = vp_unicode_is_word(code);
            at += bytes;
            continue;
        }
        stop = kind == 0   ? vp_impl_score_number_commas(at, end, after_word)
               : kind == 1 ? vp_impl_score_number_scientific(at, end)
                           : vp_impl_score_number_simple(at, end);
        if (stop) {
            /* a minus sign directly before belongs to the number, unless the previous number contains it */
            if (start > span.text && start[-1] == '-') start--;
            found(user, vp_impl_score_span_from(start, stop));
            count++;
            at = stop;
            after_word = 1;
            span.text = stop;
        } else if (code == '.') {
            at++;
            after_word = 0;
        } else { /* if the first of several digits fails, the others fail too */
            at = vp_impl_score_skip_digits(at, end, &skipped);
            after_word = 1;
        }
    }
    return count;
}

/* strings or numbers; counted first, while the arrays are NULL, then stored */
typedef struct vp_impl_score_open {
    vp_impl_score_pool *pool;
    vp_impl_score_span *strings; size_t string_count, string_capacity;
    double *numbers; size_t number_count, number_capacity;
} vp_impl_score_open;

static void vp_impl_score_open_string(vp_impl_score_open *found, vp_impl_score_span span) {
    if (found->strings && found->string_count < found->string_capacity) found->strings[found->string_count++] = span;
}

/* normalize_str: a number rounded to 2 decimals, or the text in lower case; a single character gets a space on either
 * side */
static void vp_impl_score_open_add(void *user, vp_impl_score_span span) {
    vp_impl_score_open *found = (vp_impl_score_open *)user;
    vp_impl_score_pool before = *found->pool;
    size_t i, bytes = 0;
    double value = 0;
    span = vp_impl_score_trimmed(span);
    char *text = (char *)vp_impl_score_take(found->pool, span.bytes + 1, 1);
    for (i = 0; text && i < span.bytes; i++) if (span.text[i] != ',') text[bytes++] = span.text[i];
    int number = text && vp_impl_score_float(found->pool, vp_impl_score_span_from(text, text + bytes), &value);
    vp_impl_score_give_back(found->pool, &before);
    if (number) {
        if (found->number_count < found->number_capacity)
            found->numbers[found->number_count++] = vp_impl_score_round(value, 2);
        return;
    }
    span = vp_impl_score_lower(found->pool, span);
    if (vp_impl_score_length(span) != 1) {
        vp_impl_score_open_string(found, span);
        return;
    }
    char *padded = (char *)vp_impl_score_take(found->pool, span.bytes + 3, 1); /* " x", " x " contains both */
    if (!padded) return;
    padded[0] = padded[span.bytes + 1] = ' ';
    memcpy(padded + 1, span.text, span.bytes);
    vp_impl_score_open_string(found, vp_impl_score_span_from(padded, padded + 1 + span.bytes));
    vp_impl_score_open_string(found, vp_impl_score_span_from(padded + 1, padded + 2 + span.bytes));
}

static void vp_impl_score_open_reserve(vp_impl_score_open *found, size_t strings, size_t numbers) {
    found->string_count = found->number_count = 0;
    found->strings = (vp_impl_score_span *)vp_impl_score_take(found->pool, strings + 1, sizeof *found->strings);
    found->numbers = (double *)vp_impl_score_take(found->pool, numbers + 1, sizeof *found->numbers);
    found->string_capacity = strings;
    found->number_capacity = found->numbers ? numbers : 0;
}

static void vp_impl_score_count_number(void *user, vp_impl_score_span span) { (void)span; ++*(size_t *)user; }

/* The shortest tail after the last occurrence of a key word; empty if none is useful. */
static vp_impl_score_span vp_impl_score_key_tail(vp_impl_score_span line, int is_last) {
    static const char *const keys[] = {"could be ", "so ",     "is ",     "thus ", "therefore ",
                                       "final ",    "answer ", "result ", "="};
    vp_impl_score_span tail = vp_impl_score_span_from(line.text, line.text), one;
    for (size_t i = 0; i < 9 - (size_t)!is_last; i++) {
        const vp_impl_score_span key = vp_impl_score_span_of(keys[i]);
        const char *at = vp_impl_score_search(line, key, 1);
        if (!at) continue;
        one = vp_impl_score_trimmed(vp_impl_score_span_from(at + key.bytes, line.text + line.bytes));
        if (!tail.bytes || vp_impl_score_length(one) < vp_impl_score_length(tail)) tail = one;
    }
    if (tail.bytes == 1 && strchr(":,.!?;'", tail.text[0])) tail.bytes = 0;
    return tail;
}

static void vp_impl_score_open_parse(const char *prediction, vp_impl_score_open *found) {
    vp_impl_score_span text = vp_impl_score_lower(
        found->pool, vp_impl_score_without(vp_impl_score_trimmed(vp_impl_score_span_of(prediction)), '.'));
    vp_impl_score_span *keys, tail;
    const char *line, *stop, *end = text.text + text.bytes;
    size_t count = 0, most = 1, i, numbers = 0;
    for (line = text.text; line < end; line++) most += *line == '\n';
    keys = (vp_impl_score_span *)vp_impl_score_take(found->pool, most, sizeof *keys);
    if (!keys) return;
    for (i = 0, line = text.text; i < most; i++, line = stop + 1) {
        stop = i + 1 < most ? (const char *)memchr(line, '\n', (size_t)(end - line)) : end;
        tail = vp_impl_score_key_tail(vp_impl_score_span_from(line, stop), i + 1 == most);
        if (tail.bytes) keys[count++] = tail;
    }
    if (!count) keys[count++] = text;
    for (i = 0; i < count; i++)
        for (int kind = 0; kind < 3; kind++)
            vp_impl_score_find_numbers(keys[i], kind, vp_impl_score_count_number, &numbers);
    vp_impl_score_open_reserve(found, 2 * count, count + numbers);
    for (i = 0; i < count; i++) vp_impl_score_open_add(found, keys[i]);
    for (i = 0; i < count; i++)
        for (int kind = 0; kind < 3; kind++) vp_impl_score_find_numbers(keys[i], kind, vp_impl_score_open_add, found);
}

VP_API vp_result vp_score_mmmu_open(const char *prediction, const char *const *references, size_t reference_count,
                                    char *scratch, size_t scratch_bytes, double *score) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    vp_impl_score_open found, wanted;
    int correct = 0;
    if (!vp_impl_score_arguments(prediction, references, reference_count, scratch, score)) return VP_ERR_RANGE;
    memset(&found, 0, sizeof found);
    found.pool = &pool;
    wanted = found;
    vp_impl_score_open_parse(prediction, &found);
    if (reference_count > SIZE_MAX / 2 - 1) return VP_ERR_CAPACITY;
    vp_impl_score_open_reserve(&wanted, 2 * reference_count, reference_count);
    for (size_t i = 0; i < reference_count; i++) vp_impl_score_open_add(&wanted, vp_impl_score_span_of(references[i]));
    if (pool.full) return VP_ERR_CAPACITY;
    for (size_t i = 0; i < found.string_count && !correct; i++)
        for (size_t k = 0; k < wanted.string_count && !correct; k++)
            correct = vp_impl_score_search(found.strings[i], wanted.strings[k], 0) != NULL;
    for (size_t i = 0; i < found.number_count && !correct; i++)
        for (size_t k = 0; k < wanted.number_count && !correct; k++)
            correct = found.numbers[i] == wanted.numbers[k]; /* NaN equals nothing */
    *score = correct;
    return VP_OK;
}

/* `text` in the pool, with NUL */
static const char *vp_impl_score_keep(vp_impl_score_pool *pool, vp_impl_score_span span) {
    char *copy = (char *)vp_impl_score_take(pool, span.bytes + 1, 1);
    if (!copy) return "";
    if (span.bytes) memcpy(copy, span.text, span.bytes);
    copy[span.bytes] = 0;
    return copy;
}
/* spans -> C strings in the pool */
static void vp_impl_score_texts_of(vp_impl_score_pool *pool, const vp_impl_score_span *spans, size_t count,
                                   vp_score_texts *texts) {
    const char **list = (const char **)vp_impl_score_take(pool, count + 1, sizeof *list);
    for (size_t i = 0; list && i < count; i++) list[i] = vp_impl_score_keep(pool, spans[i]);
    texts->texts = list;
    texts->count = count;
}


/* NaN last */
static int vp_impl_score_number_before(double left, double right) {
    return left < right || (left == left && right != right);
}

VP_API vp_result vp_score_mmmu_parse(const char *prediction, char *scratch, size_t scratch_bytes,
                                     vp_score_mmmu_answer *answer) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    vp_impl_score_open found;
    vp_score_texts strings;
    size_t i, k, gap, kept = 0;
    if (!prediction || !scratch || !answer) return VP_ERR_RANGE;
    memset(&found, 0, sizeof found);
    found.pool = &pool;
    vp_impl_score_open_parse(prediction, &found);
    if (pool.full) return VP_ERR_CAPACITY;
    vp_impl_score_texts_of(&pool, found.strings, vp_impl_score_unique(found.strings, found.string_count), &strings);
    if (pool.full) return VP_ERR_CAPACITY;
    for (gap = found.number_count / 2; gap > 0; gap /= 2) /* Shell's sort */
        for (i = gap; i < found.number_count; i++) {
            const double held = found.numbers[i];
            for (k = i; k >= gap && vp_impl_score_number_before(held, found.numbers[k - gap]); k -= gap)
                found.numbers[k] = found.numbers[k - gap];
            found.numbers[k] = held;
        }
    for (i = 0; i < found.number_count; i++)
        if (!kept || found.numbers[kept - 1] != found.numbers[i]) found.numbers[kept++] = found.numbers[i];
    answer->strings = strings;
    answer->numbers = found.numbers;
    answer->number_count = kept;
    return VP_OK;
}

/* -------------------------------------------------------------------------------------------------- metrics by name */
static const vp_score_metric_info vp_impl_score_metrics[] = {
#define VP_IMPL_SCORE_INFO(metric, name, others, own, run, binary, references, function) \
    {name, others, VP_SCORE_CLEAN_##own, VP_SCORE_CLEAN_##run, binary},
    VP_SCORE_METRICS(VP_IMPL_SCORE_INFO)
#undef VP_IMPL_SCORE_INFO
};

VP_API const vp_score_metric_info *vp_score_metric_of(vp_score_metric metric) {
    return (int)metric >= 0 && (int)metric < (int)VP_SCORE_METRIC_COUNT ? &vp_impl_score_metrics[metric] : NULL;
}

VP_API vp_result vp_score_metric_find(const char *name, vp_score_metric *metric) {
    if (!name || !metric) return VP_ERR_RANGE;
    size_t bytes = strlen(name);
    for (size_t i = 0; i < (size_t)VP_SCORE_METRIC_COUNT; i++) {
        const char *alias = vp_impl_score_metrics[i].others;
        int same = !strcmp(name, vp_impl_score_metrics[i].name);
        for (; !same && bytes && !strchr(name, ' ') && (alias = strstr(alias, name)) != NULL; alias++)
            same = alias[-1] == ' ' && alias[bytes] == ' ';
        if (!same) continue;
        *metric = (vp_score_metric)i;
        return VP_OK;
    }
    return VP_ERR_NOT_FOUND;
}

VP_API vp_result vp_score_metric_for_dataset(const char *dataset_name, vp_score_metric *metric) {
    static const struct {
        const char *name;
        vp_score_metric metric;
    } known[] = {{"mmmu", VP_SCORE_MMMU},
                 {"coco_caption", VP_SCORE_CAPTION_JACCARD},
                 {"coco_captioning", VP_SCORE_CAPTION_JACCARD},
                 {"science_qa_img", VP_SCORE_MC},
                 {"doc_qa", VP_SCORE_ANLS},
                 {"st_qa", VP_SCORE_ANLS},
                 {"tally_qa", VP_SCORE_EM}};
    size_t i, k;
    if (!dataset_name || !metric) return VP_ERR_RANGE;
    *metric = VP_SCORE_VQA_SEED;
    for (i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *name = known[i].name;
        for (k = 0; name[k] && (dataset_name[k] == name[k] || (dataset_name[k] == '-' && name[k] == '_')); k++) {}
        if (!name[k] && !dataset_name[k]) *metric = known[i].metric;
    }
    return VP_OK;
}

VP_API vp_score_sample vp_score_sample_default(void) {
    vp_score_sample sample;
    memset(&sample, 0, sizeof sample);
    sample.answer_index = -1;
    return sample;
}

/* compares the option that a rule chose with the answer's index */
static vp_result vp_impl_score_chosen(vp_result result, int32_t index, int64_t answer, vp_score_outcome *outcome) {
    if (result == VP_ERR_MISMATCH) {
        outcome->reason = "no options, or two options that differ only in case or surrounding spaces: the rule cannot "
                          "choose";
        return VP_OK;
    }
    if (result != VP_OK) return result;
    outcome->option_index = index;
    if (answer < 0) outcome->reason = "the row has no answer among its options";
    else outcome->score = index == answer;
    return VP_OK;
}
static vp_result vp_impl_score_selected(vp_impl_score_pool *pool, const vp_score_sample *sample,
                                        const char *const *options, size_t count, int64_t answer,
                                        vp_score_outcome *outcome) {
    int32_t index = -1;
    vp_result result = vp_impl_score_select(pool, sample->prediction, options, count, &index, &outcome->is_nearest);
    return vp_impl_score_chosen(result, index, answer, outcome);
}
/* ScienceQA's rule: the first capital A-Z that is a whole word, if there is such an option; otherwise the name that
 * equals the upper-cased prediction; otherwise the text rule over the names, or without names over the options.
 * source: base_experiment.py, compute_accuracy */
static vp_result vp_impl_score_mc_rule(vp_impl_score_pool *pool, const vp_score_sample *sample,
                                       vp_score_outcome *outcome) {
    const vp_impl_score_span trimmed = vp_impl_score_trimmed(vp_impl_score_span_of(sample->prediction));
    const vp_impl_score_span upper = vp_impl_score_map(pool, trimmed, vp_impl_score_upper_rule);
    const char *const *names = sample->option_names;
    const int32_t letter = vp_impl_score_letter(upper);
    if (pool->full) return VP_ERR_CAPACITY;
    if (letter >= 0 && (size_t)letter < sample->option_count)
        return vp_impl_score_chosen(VP_OK, letter, sample->answer_index, outcome);
    for (size_t i = 0; i < sample->option_name_count && i < INT32_MAX; i++)
        if (vp_impl_score_same(upper, vp_impl_score_span_of(names[i])))
            return vp_impl_score_chosen(VP_OK, (int32_t)i, sample->answer_index, outcome);
    return vp_impl_score_selected(pool, sample, sample->option_name_count ? names : sample->options,
                                  sample->option_name_count ? sample->option_name_count : sample->option_count,
                                  sample->answer_index, outcome);
}
static vp_result vp_impl_score_mc_text(vp_impl_score_pool *pool, const vp_score_sample *sample,
                                       vp_score_outcome *outcome) {
    return vp_impl_score_selected(pool, sample, sample->option_names, sample->option_name_count, sample->answer_index,
                                  outcome);
}
static const char *const vp_impl_score_letters[] = {"A", "B", "C", "D"};
static vp_result vp_impl_score_seed_bench(vp_impl_score_pool *pool, const vp_score_sample *sample,
                                          vp_score_outcome *outcome) {
    return vp_impl_score_selected(pool, sample, vp_impl_score_letters, 4, sample->answer_index, outcome);
}
/* equal to the only reference after normalisation, or the same letter */
static vp_result vp_impl_score_real_world(vp_impl_score_pool *pool, const vp_score_sample *sample,
                                          vp_score_outcome *outcome) {
    const char *letter = sample->references[0];
    size_t matches = 0;
    if (sample->question_type && !strcmp(sample->question_type, "multiple_choice"))
        return vp_impl_score_selected(pool, sample, vp_impl_score_letters, 4,
                                      letter[0] >= 'A' && letter[0] <= 'D' && !letter[1] ? letter[0] - 'A' : -1,
                                      outcome);
    vp_result result = vp_impl_score_matches(sample->prediction, sample->references, 1, vp_impl_score_normalised,
                                             pool->next, pool->left, &matches);
    if (result == VP_OK) outcome->score = matches == 1;
    return result;
}

static vp_result vp_impl_score_mmmu_letters(vp_impl_score_pool *pool, const vp_score_sample *sample,
                                            vp_score_outcome *outcome) {
    int32_t index = -1;
    vp_result result =
        vp_score_mmmu_choice(sample->prediction, sample->options, sample->option_count, pool->next, pool->left, &index);
    if (result == VP_ERR_NOT_FOUND) {
        outcome->is_unparsed = 1;
        outcome->reason = "unparsed: the answer names no option";
        return VP_OK;
    }
    if (result != VP_OK) return result;
    outcome->option_index = index;
    outcome->score = 0;
    for (size_t i = 0; i < sample->reference_count; i++)
        if (sample->references[i][0] == 'A' + index && !sample->references[i][1]) outcome->score = 1;
    return VP_OK;
}

static vp_result vp_impl_score_mmmu(vp_impl_score_pool *pool, const vp_score_sample *sample,
                                    vp_score_outcome *outcome) {
    if (sample->question_type ? !strcmp(sample->question_type, "multiple-choice") : sample->option_count > 0)
        return vp_impl_score_mmmu_letters(pool, sample, outcome);
    return vp_score_mmmu_open(sample->prediction, sample->references, sample->reference_count, pool->next, pool->left,
                              &outcome->score);
}

static vp_result vp_impl_score_plain_vqa(vp_impl_score_pool *pool, const vp_score_sample *sample,
                                         vp_score_outcome *outcome) {
    if (!sample->is_plain_reference || !sample->reference_count)
        return vp_score_vqa_seed(sample->prediction, sample->references, sample->reference_count, pool->next,
                                 pool->left, &outcome->score);
    vp_result result = vp_score_vqa_normalise(sample->prediction, pool->next, pool->left, NULL);
    /* the reference text is not normalised, as in the original */
    if (result == VP_OK) outcome->score = !strcmp(pool->next, sample->references[0]);
    return result;
}

static vp_result vp_impl_score_anls_rule(vp_impl_score_pool *pool, const vp_score_sample *sample,
                                         vp_score_outcome *outcome) {
    vp_result result = vp_score_anls(sample->prediction, sample->references, sample->reference_count, pool->next,
                                     pool->left, &outcome->score);
    if (result != VP_ERR_MISMATCH) return result;
    outcome->reason = "prediction and reference are both empty: the reference implementation fails on it";
    return VP_OK;
}

typedef enum vp_impl_score_needs { VP_IMPL_SCORE_NONE, VP_IMPL_SCORE_LIST, VP_IMPL_SCORE_ONE } vp_impl_score_needs;
static const struct {
    vp_impl_score_needs references;
    vp_score_rule *plain;
    vp_result (*whole)(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome);
} vp_impl_score_rules[] = {
#define VP_IMPL_SCORE_PLAIN(name) vp_score_##name, NULL
#define VP_IMPL_SCORE_WHOLE(name) NULL, vp_impl_score_##name
#define VP_IMPL_SCORE_RULE(metric, name, others, own, run, binary, references, function) \
    {VP_IMPL_SCORE_##references, VP_IMPL_SCORE_##function},
    VP_SCORE_METRICS(VP_IMPL_SCORE_RULE)};

static vp_result vp_impl_score_by_metric(vp_score_metric metric, const vp_score_sample *sample,
                                         vp_impl_score_pool *pool, vp_score_outcome *outcome) {
    if (vp_impl_score_rules[metric].plain)
        return vp_impl_score_rules[metric].plain(sample->prediction, sample->references, sample->reference_count,
                                                 pool->next, pool->left, &outcome->score);
    return vp_impl_score_rules[metric].whole(pool, sample, outcome);
}

static int vp_impl_score_sample_is_whole(const vp_score_sample *sample) {
    const char *const *const lists[3] = {sample->references, sample->options, sample->option_names};
    const size_t counts[3] = {sample->reference_count, sample->option_count, sample->option_name_count};
    for (size_t i = 0; i < 3; i++) {
        if (!lists[i] && counts[i]) return 0;
        for (size_t k = 0; k < counts[i]; k++) if (!lists[i][k]) return 0;
    }
    return sample->prediction != NULL;
}

VP_API vp_result vp_score_compute(vp_score_metric metric, vp_score_cleaning cleaning, const vp_score_sample *sample,
                                  char *scratch, size_t scratch_bytes, vp_score_outcome *outcome) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    vp_score_outcome made;
    size_t bytes = 0;
    vp_result result = VP_OK;
    if (!vp_score_metric_of(metric) || !sample || !scratch || !outcome || !vp_impl_score_sample_is_whole(sample))
        return VP_ERR_RANGE;
    if ((int)cleaning < 0 || cleaning > VP_SCORE_CLEAN_FREQUENT) return VP_ERR_RANGE;
    vp_impl_score_needs needed = vp_impl_score_rules[metric].references;
    vp_score_sample cleaned = *sample;
    made.score = (double)NAN;
    made.reason = NULL;
    made.is_unparsed = made.is_nearest = 0;
    made.option_index = -1;
    if (cleaning != VP_SCORE_CLEAN_NONE) {
        char *text = (char *)vp_impl_score_take(&pool, strlen(sample->prediction) + 1, 1);
        if (!text) return VP_ERR_CAPACITY;
        if (cleaning == VP_SCORE_CLEAN_LAST)
            result = vp_score_clean(sample->prediction, text, strlen(sample->prediction) + 1, &bytes);
        else
            result = vp_score_clean_frequent(sample->prediction, pool.next, pool.left, text,
                                             strlen(sample->prediction) + 1, &bytes);
        if (result != VP_OK) return result;
        cleaned.prediction = text;
    }
    made.cleaned = cleaned.prediction;
    if (needed != VP_IMPL_SCORE_NONE
        && (!sample->references || (needed == VP_IMPL_SCORE_ONE && !sample->reference_count)))
        made.reason = "the row has no references";
    else result = vp_impl_score_by_metric(metric, &cleaned, &pool, &made);
    if (result == VP_OK) *outcome = made;
    return result;
}

VP_EXACT_END
VP_EXTERN_C_END
#endif /* implementation */
