/* vlmprof_prompt.h - v0.2.0 - records of the nine data sets -> text - MIT licence
 *
 * A record of a data set -> the text that the tokenizer gets. Several messages follow one another; their ids are the
 * ids of the whole text. (A data set's metric: vp_score_metric_for_dataset.)
 * source:  ChulanZhang/molmo_hf 09bce1f, molmo/data/academic_datasets.py and data_formatter.py (prompt_type
 *          uber_model, message_formatting role, system_prompt_kind demo_or_style, always_start_with_space), slips
 *          included; max_new_tokens: experiments/core_exp/answer_length_summary.md (recommended; its launch scripts
 *          have 16, 64, 16, 16, 32, 32, 16 and 64 in this order, without mmmu)
 *
 * Needs vlmprof.h, and includes what is missing.
 * Define VLMPROF_IMPLEMENTATION in one file, for all headers of vlmprof that it includes, or
 * VLMPROF_PROMPT_IMPLEMENTATION for this one alone. The manual stands in vlmprof.h. */
#ifndef VLMPROF_PROMPT_H
#define VLMPROF_PROMPT_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* how a data set makes its messages */
typedef enum vp_prompt_kind {
    VP_PROMPT_QUESTION,  /* one question; options of the record are not read */
    VP_PROMPT_QUESTIONS, /* all questions of an image, a message each: the model answers the last one */
    VP_PROMPT_SCIENCE,   /* question and options; a hint that is not empty stands twice in place of the question */
    /* multiple choice or open, by question_type; two options that are image links drop the image, and with it BOS */
    VP_PROMPT_MMMU,
    VP_PROMPT_CAPTION    /* no question: one of ten templates by lot */
} vp_prompt_kind;
typedef struct vp_prompt_dataset {
    const char *name, *style; /* style: of mmmu's open questions; its multiple choice has a_okvqa_mc */
    int32_t max_new_tokens;   /* longest reference answer, rounded up to a power of two */
    vp_prompt_kind kind;
} vp_prompt_dataset;
/* The data sets; NULL outside the list: count up from 0 until NULL to list them. */
VP_API const vp_prompt_dataset *vp_prompt_dataset_at(int32_t index);
/* NULL: no data set has this name (name NULL is allowed). */
VP_API const vp_prompt_dataset *vp_prompt_dataset_find(const char *name);
/* The only data set with this style; NULL for vqa2, a_okvqa_mc and any other style. */
VP_API const vp_prompt_dataset *vp_prompt_dataset_of_style(const char *style);

#define VP_PROMPT_OPTIONS 7       /* the reference has letters A to G; further options vanish */
#define VP_PROMPT_PLAIN_OPTIONS 26 /* without data set and style, which is no prompt of the reference: A to Z */

/* What is known about a record; fields that are zero are unknown. */
typedef struct vp_prompt {
    /* NULL: none of the nine; options then follow any question */
    const vp_prompt_dataset *dataset;
    const char *style;                                       /* NULL: the data set's; neither: no style in the text */
    const char *const *questions; size_t question_count;
    const char *const *options; size_t option_count;         /* NULL: the record has none */
    const char *hint, *question_type;                        /* question_type: "multiple-choice", else open */
    /* of the lot for captions: the experiment's seed (66, older ones 42) + data set index */
    uint32_t rng_seed;
} vp_prompt;
typedef struct vp_prompt_info {
    const char *style;              /* in the text; NULL: none */
    int has_image, bos_prepended;   /* what the reference puts before the text */
    int has_subsegments;            /* more than one message */
    int32_t template_index;         /* of a caption, else -1 */
    size_t options_dropped;
} vp_prompt_info;

/* Record to text.
 * out:     out       [capacity] with NUL, on success only; NULL only counts
 *          needed    bytes without the NUL, may be NULL; on VP_OK and VP_ERR_CAPACITY
 *          info      may be NULL; as needed
 *          error     may be NULL; where: the field concerned
 * returns: VP_OK; VP_ERR_CAPACITY fewer than *needed + 1 bytes; VP_ERR_MISMATCH the record lacks what its data set
 *          needs; VP_ERR_RANGE more than VP_PROMPT_PLAIN_OPTIONS options, a text over SIZE_MAX, NULL
 * rule:    message = " User: " + STYLE + ":" + (" " + prompt, if not empty) + " Assistant:", without a style " User: "
 *          + prompt + " Assistant:"; prompt = question, or question + "\n" + "A: ..." lines + "\n"; template =
 *          RandomState(rng_seed).randint(0, 10); mmmu without question_type: multiple choice if the style is
 *          a_okvqa_mc, or if there are options and no style
 * memory:  2.5 KB of stack
 * threads: reentrant */
VP_API vp_result vp_prompt_build(const vp_prompt *prompt, char *out, size_t capacity, size_t *needed,
                                 vp_prompt_info *info, vp_error *error);

#ifdef __cplusplus
}
#endif
#endif /* VLMPROF_PROMPT_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_PROMPT_IMPLEMENTATION)) \
    && !defined(VLMPROF_PROMPT_IMPLEMENTATION_DONE)
#define VLMPROF_PROMPT_IMPLEMENTATION_DONE
#include <string.h>
#ifdef __cplusplus
extern "C" {
#endif

static const vp_prompt_dataset vp_impl_prompt_datasets[] = {
    {"coco_2014_vqa", "vqa2", 32, VP_PROMPT_QUESTION},
    {"text_vqa", "text_vqa", 64, VP_PROMPT_QUESTION},
    {"okvqa", "okvqa", 32, VP_PROMPT_QUESTION},
    {"science_qa_img", "science_qa", 16, VP_PROMPT_SCIENCE},
    {"st_qa", "st_qa", 32, VP_PROMPT_QUESTION},
    {"doc_qa", "doc_qa", 64, VP_PROMPT_QUESTION},
    {"tally_qa", "tally_qa", 16, VP_PROMPT_QUESTIONS},
    {"mmmu", "vqa2", 32, VP_PROMPT_MMMU},
    {"coco_caption", "coco_captioning", 64, VP_PROMPT_CAPTION},
    /* other names that the reference takes */
    {"coco_2014_vqa_multi", "vqa2", 32, VP_PROMPT_QUESTIONS},
    {"coco_captioning", "coco_captioning", 64, VP_PROMPT_CAPTION},
};
static const char vp_impl_prompt_choice_style[] = "a_okvqa_mc";
/* the sixth is two templates in one: the reference's list lacks a comma there */
static const char *const vp_impl_prompt_templates[10] = {
    "Caption the image with 1 or two sentences",
    "Write a very short description of this image.",
    "Briefly describe the image.",
    "Look and this image, and then summarize it in a sentence or two.",
    "Write a brief caption describing the image",
    "Brief Caption:A short image caption:",
    "A short image description",
    "Briefly describe the content of the image.",
    "Can you give me one sentence summary of the picture?",
    "How would you describe this image in a sentence or two?",
};

VP_API const vp_prompt_dataset *vp_prompt_dataset_at(int32_t index) {
    if (index < 0 || (size_t)index >= sizeof vp_impl_prompt_datasets / sizeof vp_impl_prompt_datasets[0]) return NULL;
    return &vp_impl_prompt_datasets[index];
}
VP_API const vp_prompt_dataset *vp_prompt_dataset_find(const char *name) {
    const vp_prompt_dataset *dataset;
    int32_t i;
    for (i = 0; name && (dataset = vp_prompt_dataset_at(i)) != NULL; i++)
        if (strcmp(dataset->name, name) == 0) return dataset;
    return NULL;
}
VP_API const vp_prompt_dataset *vp_prompt_dataset_of_style(const char *style) {
    const vp_prompt_dataset *dataset;
    int32_t i;
    if (!style || strcmp(style, "vqa2") == 0) return NULL;
    for (i = 0; (dataset = vp_prompt_dataset_at(i)) != NULL; i++)
        if (strcmp(dataset->style, style) == 0) return dataset;
    return NULL;
}

/* what the messages consist of */
typedef struct vp_impl_prompt_plan {
    const vp_prompt *prompt;
    const char *fixed;      /* replaces the question */
    const char *hint;       /* replaces the question, twice */
    size_t messages, options;
    int has_options;
    vp_prompt_info info;
} vp_impl_prompt_plan;
/* out NULL: only counts */
typedef struct vp_impl_prompt_text { char *out; size_t bytes; int too_long; } vp_impl_prompt_text;

static void vp_impl_prompt_add(vp_impl_prompt_text *prompt_text, const char *text) {
    const size_t bytes = strlen(text);
    if (bytes >= SIZE_MAX - prompt_text->bytes) prompt_text->too_long = 1;
    if (prompt_text->too_long) return;
    if (prompt_text->out) memcpy(prompt_text->out + prompt_text->bytes, text, bytes);
    prompt_text->bytes += bytes;
}
static void vp_impl_prompt_write(vp_impl_prompt_text *prompt_text, const vp_impl_prompt_plan *plan) {
    size_t i, k;
    for (i = 0; i < plan->messages; i++) {
        const char *question = plan->fixed ? plan->fixed : plan->hint ? plan->hint : plan->prompt->questions[i];
        vp_impl_prompt_add(prompt_text, " User: ");
        if (plan->info.style) {
            vp_impl_prompt_add(prompt_text, plan->info.style);
            vp_impl_prompt_add(prompt_text, question[0] || plan->has_options ? ": " : ":");
        }
        vp_impl_prompt_add(prompt_text, question);
        if (plan->hint) {
            vp_impl_prompt_add(prompt_text, "\n");
            vp_impl_prompt_add(prompt_text, plan->hint);
        }
        if (plan->has_options) vp_impl_prompt_add(prompt_text, "\n");
        for (k = 0; k < plan->options; k++) {
            char letter[4] = {'A', ':', ' ', 0};
            letter[0] = (char)(letter[0] + (int)k);
            if (k) vp_impl_prompt_add(prompt_text, "\n");
            vp_impl_prompt_add(prompt_text, letter);
            vp_impl_prompt_add(prompt_text, plan->prompt->options[k]);
        }
        if (plan->has_options) vp_impl_prompt_add(prompt_text, "\n");
        vp_impl_prompt_add(prompt_text, " Assistant:");
    }
}

/* Python: re.match("<img='(.*?)'>", option); the dot does not match a line feed */
static int vp_impl_prompt_is_image(const char *option) {
    const char *end, *line;
    if (strncmp(option, "<img='", 6) != 0) return 0;
    end = strstr(option + 6, "'>");
    line = strchr(option + 6, '\n');
    return end && (!line || end < line);
}
static int vp_impl_prompt_is_choice(const vp_prompt *prompt) {
    if (prompt->question_type) return strcmp(prompt->question_type, "multiple-choice") == 0;
    return prompt->style ? strcmp(prompt->style, vp_impl_prompt_choice_style) == 0 : prompt->options != NULL;
}

/* applies the rule of the record's data set */
static void vp_impl_prompt_choose(vp_impl_prompt_plan *plan) {
    const vp_prompt *prompt = plan->prompt;
    const vp_prompt_kind kind = prompt->dataset ? prompt->dataset->kind : VP_PROMPT_QUESTIONS;
    const char *style = prompt->dataset ? prompt->dataset->style : NULL;
    vp_random random;
    size_t k, images = 0;
    plan->messages = prompt->question_count;
    plan->has_options = !prompt->dataset && prompt->options;
    plan->info.has_image = 1;
    plan->info.template_index = -1;
    if (kind == VP_PROMPT_CAPTION) {
        vp_random_seed(&random, prompt->rng_seed);
        plan->info.template_index = (int32_t)vp_random_below(&random, 9);
        plan->fixed = vp_impl_prompt_templates[plan->info.template_index];
        plan->messages = 1;
    } else if (kind == VP_PROMPT_SCIENCE) {
        plan->has_options = 1;
        if (prompt->hint && prompt->hint[0]) {
            plan->hint = prompt->hint;
            plan->messages = 1;
        }
    } else if (kind == VP_PROMPT_MMMU && vp_impl_prompt_is_choice(prompt)) {
        style = vp_impl_prompt_choice_style;
        plan->has_options = 1;
        for (k = 0; prompt->options && k < prompt->option_count; k++)
            images += (size_t)vp_impl_prompt_is_image(prompt->options[k]);
        plan->info.has_image = images < 2;
    }
    plan->info.style = prompt->style ? prompt->style : style;
    plan->info.bos_prepended = plan->info.has_image;
    plan->info.has_subsegments = plan->messages > 1;
    k = plan->info.style ? VP_PROMPT_OPTIONS : VP_PROMPT_PLAIN_OPTIONS;
    if (!plan->has_options) return;
    plan->options = prompt->option_count < k ? prompt->option_count : k;
    plan->info.options_dropped = prompt->option_count - plan->options;
}

VP_API vp_result vp_prompt_build(const vp_prompt *prompt, char *out, size_t capacity, size_t *needed,
                                 vp_prompt_info *info, vp_error *error) {
    const char *const name = prompt && prompt->dataset ? prompt->dataset->name : "prompt";
    vp_impl_prompt_text prompt_text = {NULL, 0, 0};
    vp_impl_prompt_plan plan;
    size_t i;
    if (!prompt || (!prompt->questions && prompt->question_count) || (!prompt->options && prompt->option_count))
        return vp_fail(error, VP_ERR_RANGE, -1, name, "no record, or a count without its texts");
    for (i = 0; i < prompt->question_count; i++)
        if (!prompt->questions[i]) return vp_fail(error, VP_ERR_RANGE, -1, "question", "a text is NULL");
    for (i = 0; i < prompt->option_count; i++)
        if (!prompt->options[i]) return vp_fail(error, VP_ERR_RANGE, -1, "options", "a text is NULL");
    memset(&plan, 0, sizeof plan);
    plan.prompt = prompt;
    vp_impl_prompt_choose(&plan);
    if (!plan.messages) return vp_fail(error, VP_ERR_MISMATCH, -1, "question", "the record has no question");
    if (plan.messages > 1 && prompt->dataset && prompt->dataset->kind != VP_PROMPT_QUESTIONS)
        return vp_fail(error, VP_ERR_MISMATCH, -1, "questions", "records of this data set have one question each");
    if (plan.has_options && !prompt->options)
        return vp_fail(error, VP_ERR_MISMATCH, -1, "options", "the record has no options to choose from");
    if (plan.info.options_dropped && !plan.info.style)
        return vp_fail(error, VP_ERR_RANGE, -1, "options", "there are letters for 26 options at most");
    vp_impl_prompt_write(&prompt_text, &plan);
    if (prompt_text.too_long) return vp_fail(error, VP_ERR_RANGE, -1, name, "the prompt is too long");
    if (out && prompt_text.bytes < capacity) {
        prompt_text.out = out;
        prompt_text.bytes = 0;
        vp_impl_prompt_write(&prompt_text, &plan);
        out[prompt_text.bytes] = 0;
    }
    if (needed) *needed = prompt_text.bytes;
    if (info) *info = plan.info;
    return prompt_text.out ? VP_OK : VP_ERR_CAPACITY;
}

#ifdef __cplusplus
}
#endif
#endif /* implementation */
