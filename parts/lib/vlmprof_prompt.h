/* vlmprof_prompt.h - v0.2.0 - records of the nine data sets -> prompt text - MIT licence
 *
 * Turns a record of a data set into the text for the tokenizer. Messages are concatenated; their ids are the ids of the
 * whole text. (For a data set's metric, see vp_score_metric_for_dataset.)
 * source:  ChulanZhang/molmo_hf 09bce1f, molmo/data/academic_datasets.py and data_formatter.py (prompt_type
 *          uber_model, message_formatting role, system_prompt_kind demo_or_style, always_start_with_space), including
 *          its mistakes; max_new_tokens: experiments/core_exp/answer_length_summary.md (recommended; its launch scripts
 *          use 16, 64, 16, 16, 32, 32, 16 and 64 in this order, without mmmu) */
#ifndef VLMPROF_PROMPT_H
#define VLMPROF_PROMPT_H
#include "vlmprof.h"

VP_EXTERN_C_BEGIN

/* the message format of a data set */
typedef enum vp_prompt_kind {
    VP_PROMPT_QUESTION,  /* one question; the record's options are not read */
    VP_PROMPT_QUESTIONS, /* all questions about an image, one message each; the model answers the last one */
    VP_PROMPT_SCIENCE,   /* question and options; a hint that is not empty replaces the question, twice */
    /* multiple choice or open, by question_type; if two options are image links, the image is dropped, and with it
     * BOS */
    VP_PROMPT_MMMU,
    VP_PROMPT_CAPTION /* no question: one of ten templates, drawn at random */
} vp_prompt_kind;
typedef struct vp_prompt_dataset {
    const char *name, *style; /* style: for mmmu, that of open questions; its multiple choice uses a_okvqa_mc */
    int32_t max_new_tokens;   /* longest reference answer, rounded up to a power of two */
    vp_prompt_kind kind;
} vp_prompt_dataset;
/* The data sets; NULL outside the list, so counting up from 0 until NULL lists all. */
VP_API const vp_prompt_dataset *vp_prompt_dataset_at(int32_t index);
/* The data set with this name, or NULL. name may be NULL. */
VP_API const vp_prompt_dataset *vp_prompt_dataset_find(const char *name);
/* The only data set with this style; NULL for vqa2, a_okvqa_mc and any other style. */
VP_API const vp_prompt_dataset *vp_prompt_dataset_of_style(const char *style);

#define VP_PROMPT_OPTIONS 7        /* the reference has letters A to G and drops further options */
#define VP_PROMPT_PLAIN_OPTIONS 26 /* A to Z, without data set and style; the reference has no such prompt */

/* The known facts about a record; zero fields are unknown. */
typedef struct vp_prompt {
    /* NULL: none of the nine; any question may then have options */
    const vp_prompt_dataset *dataset;
    const char *style; /* NULL: the data set's; without either, the text has no
                                                              * style */
    const char *const *questions; size_t question_count;
    const char *const *options; size_t option_count;         /* NULL: the record has none */
    const char *hint, *question_type;                        /* question_type: "multiple-choice", else open */
    /* draws the caption template: the experiment's seed (66; 42 in older experiments) + data set index */
    uint32_t rng_seed;
} vp_prompt;
typedef struct vp_prompt_info {
    const char *style;            /* the style in the text; NULL: no style */
    int has_image, bos_prepended; /* items that the reference puts before the text */
    int has_subsegments;          /* more than one message */
    int32_t template_index;       /* template of a caption, else -1 */
    size_t options_dropped;
} vp_prompt_info;

/* Turns a record into text.
 * out:     out [capacity] with NUL, on success only; NULL only counts
 *          needed    bytes without the NUL, may be NULL; on VP_OK and VP_ERR_CAPACITY
 *          info      may be NULL; on VP_OK and VP_ERR_CAPACITY
 *          error     may be NULL; `where` is the field
 * returns: VP_OK; VP_ERR_CAPACITY: fewer than *needed + 1 bytes; VP_ERR_MISMATCH: the record lacks a field that its
 *          data set needs; VP_ERR_RANGE: more than VP_PROMPT_PLAIN_OPTIONS options, a text over SIZE_MAX, or NULL
 * rule:    message = " User: " + STYLE + ":" + (" " + prompt, if not empty) + " Assistant:"; without a style " User: "
 *          + prompt + " Assistant:"; prompt = question, or question + "\n" + "A: ..." lines + "\n"; template =
 *          RandomState(rng_seed).randint(0, 10); mmmu without question_type: multiple choice if the style is
 *          a_okvqa_mc, or if there are options and no style
 * memory:  2.5 KB of stack
 * threads: reentrant */
VP_API vp_result vp_prompt_build(const vp_prompt *prompt, char *out, size_t capacity, size_t *needed,
                                 vp_prompt_info *info, vp_error *error);

VP_EXTERN_C_END
#endif /* VLMPROF_PROMPT_H */
