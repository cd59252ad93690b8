/* vlmprof_prompt.h - v0.2.0 - records of the nine data sets -> text - MIT licence
 *
 * A data set's record -> the text that the tokenizer gets. Several messages stand one behind the other; their ids are the ids of that text.
 * (A data set's metric: vp_score_metric_for_dataset.)
 * source: ChulanZhang/molmo_hf 09bce1f, molmo/data/academic_datasets.py and data_formatter.py (prompt_type uber_model, message_formatting role,
 *         system_prompt_kind demo_or_style, always_start_with_space), slips included; max_new_tokens: experiments/core_exp/answer_length_summary.md
 *         (recommended; its launch scripts have 16, 64, 16, 16, 32, 32, 16 and 64 in this order, without mmmu)
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
    VP_PROMPT_MMMU,      /* multiple choice or open, by question_type; two options that are image links drop the image, and with it BOS */
    VP_PROMPT_CAPTION    /* no question: one of ten templates by lot */
} vp_prompt_kind;
typedef struct vp_prompt_dataset {
    const char *name, *style; /* style: of mmmu's open questions; its multiple choice has a_okvqa_mc */
    int32_t max_new_tokens;   /* longest reference answer, rounded up to a power of two */
    vp_prompt_kind kind;
} vp_prompt_dataset;
/* The data sets; NULL outside the list, so that 0, 1, ... up to NULL lists them. */
VP_API const vp_prompt_dataset *vp_prompt_dataset_at(int32_t index);
/* NULL: none is called so (name NULL is allowed). */
VP_API const vp_prompt_dataset *vp_prompt_dataset_find(const char *name);
/* The only data set with this style; NULL for vqa2, a_okvqa_mc and any other style. */
VP_API const vp_prompt_dataset *vp_prompt_dataset_of_style(const char *style);

#define VP_PROMPT_OPTIONS 7       /* the reference has letters A to G; further options vanish */
#define VP_PROMPT_PLAIN_OPTIONS 26 /* without data set and style, which is no prompt of the reference: A to Z */

/* What is known of a record; zeroed fields are unknown. */
typedef struct vp_prompt {
    const vp_prompt_dataset *dataset;                        /* NULL: none of the nine; options then follow any question */
    const char *style;                                       /* NULL: the data set's; neither: no style in the text */
    const char *const *questions; size_t question_count;
    const char *const *options; size_t option_count;         /* NULL: the record has none */
    const char *hint, *question_type;                        /* question_type: "multiple-choice", else open */
    uint32_t rng_seed;                                       /* of the lot for captions: the experiment's seed (66, older ones 42) + data set index */
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
 * returns: VP_OK; VP_ERR_CAPACITY fewer than *needed + 1 bytes; VP_ERR_MISMATCH the record lacks what its data set needs; VP_ERR_RANGE more than
 *          VP_PROMPT_PLAIN_OPTIONS options, a text over SIZE_MAX, NULL
 * rule:    message = " User: " + STYLE + ":" + (" " + prompt, if not empty) + " Assistant:", without a style " User: " + prompt + " Assistant:";
 *          prompt = question, or question + "\n" + "A: ..." lines + "\n"; template = RandomState(rng_seed).randint(0, 10);
 *          mmmu without question_type: multiple choice if the style is a_okvqa_mc, or if there are options and no style
 * memory:  2.5 KB of stack
 * threads: reentrant */
VP_API vp_result vp_prompt_build(const vp_prompt *prompt, char *out, size_t capacity, size_t *needed, vp_prompt_info *info, vp_error *error);

#ifdef __cplusplus
}
#endif
#endif /* VLMPROF_PROMPT_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_PROMPT_IMPLEMENTATION)) && !defined(VLMPROF_PROMPT_IMPLEMENTATION_DONE)
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
/* the sixth is two: the reference's list lacks a comma there */
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
    const vp_prompt_dataset *d;
    int32_t i;
    for (i = 0; name && (d = vp_prompt_dataset_at(i)) != NULL; i++) if (strcmp(d->name, name) == 0) return d;
    return NULL;
}
VP_API const vp_prompt_dataset *vp_prompt_dataset_of_style(const char *style) {
    const vp_prompt_dataset *d;
    int32_t i;
    if (!style || strcmp(style, "vqa2") == 0) return NULL;
    for (i = 0; (d = vp_prompt_dataset_at(i)) != NULL; i++) if (strcmp(d->style, style) == 0) return d;
    return NULL;
}

/* what the messages are made of */
typedef struct vp_impl_prompt_plan {
    const vp_prompt *p;
    const char *fixed;      /* stands in place of the question */
    const char *hint;       /* stands twice in place of it */
    size_t messages, options;
    int has_options;
    vp_prompt_info info;
} vp_impl_prompt_plan;
typedef struct vp_impl_prompt_text { char *out; size_t bytes; int too_long; } vp_impl_prompt_text; /* out NULL: only counts */

static void vp_impl_prompt_add(vp_impl_prompt_text *t, const char *text) {
    const size_t bytes = strlen(text);
    if (bytes >= SIZE_MAX - t->bytes) t->too_long = 1;
    if (t->too_long) return;
    if (t->out) memcpy(t->out + t->bytes, text, bytes);
    t->bytes += bytes;
}
static void vp_impl_prompt_write(vp_impl_prompt_text *t, const vp_impl_prompt_plan *x) {
    size_t i, k;
    for (i = 0; i < x->messages; i++) {
        const char *question = x->fixed ? x->fixed : x->hint ? x->hint : x->p->questions[i];
        vp_impl_prompt_add(t, " User: ");
        if (x->info.style) {
            vp_impl_prompt_add(t, x->info.style);
            vp_impl_prompt_add(t, question[0] || x->has_options ? ": " : ":");
        }
        vp_impl_prompt_add(t, question);
        if (x->hint) {
            vp_impl_prompt_add(t, "\n");
            vp_impl_prompt_add(t, x->hint);
        }
        if (x->has_options) vp_impl_prompt_add(t, "\n");
        for (k = 0; k < x->options; k++) {
            char letter[4] = {'A', ':', ' ', 0};
            letter[0] = (char)(letter[0] + k);
            if (k) vp_impl_prompt_add(t, "\n");
            vp_impl_prompt_add(t, letter);
            vp_impl_prompt_add(t, x->p->options[k]);
        }
        if (x->has_options) vp_impl_prompt_add(t, "\n");
        vp_impl_prompt_add(t, " Assistant:");
    }
}

/* Python: re.match("<img='(.*?)'>", option); the dot takes no line feed */
static int vp_impl_prompt_is_image(const char *option) {
    const char *end, *line;
    if (strncmp(option, "<img='", 6) != 0) return 0;
    end = strstr(option + 6, "'>");
    line = strchr(option + 6, '\n');
    return end && (!line || end < line);
}
static int vp_impl_prompt_is_choice(const vp_prompt *p) {
    if (p->question_type) return strcmp(p->question_type, "multiple-choice") == 0;
    return p->style ? strcmp(p->style, vp_impl_prompt_choice_style) == 0 : p->options != NULL;
}

/* the rule of the record's data set */
static void vp_impl_prompt_choose(vp_impl_prompt_plan *x) {
    const vp_prompt *p = x->p;
    const vp_prompt_kind kind = p->dataset ? p->dataset->kind : VP_PROMPT_QUESTIONS;
    const char *style = p->dataset ? p->dataset->style : NULL;
    vp_random random;
    size_t k, images = 0;
    x->messages = p->question_count;
    x->has_options = !p->dataset && p->options;
    x->info.has_image = 1;
    x->info.template_index = -1;
    if (kind == VP_PROMPT_CAPTION) {
        vp_random_seed(&random, p->rng_seed);
        x->info.template_index = (int32_t)vp_random_below(&random, 9);
        x->fixed = vp_impl_prompt_templates[x->info.template_index];
        x->messages = 1;
    } else if (kind == VP_PROMPT_SCIENCE) {
        x->has_options = 1;
        if (p->hint && p->hint[0]) {
            x->hint = p->hint;
            x->messages = 1;
        }
    } else if (kind == VP_PROMPT_MMMU && vp_impl_prompt_is_choice(p)) {
        style = vp_impl_prompt_choice_style;
        x->has_options = 1;
        for (k = 0; p->options && k < p->option_count; k++) images += (size_t)vp_impl_prompt_is_image(p->options[k]);
        x->info.has_image = images < 2;
    }
    x->info.style = p->style ? p->style : style;
    x->info.bos_prepended = x->info.has_image;
    x->info.has_subsegments = x->messages > 1;
    k = x->info.style ? VP_PROMPT_OPTIONS : VP_PROMPT_PLAIN_OPTIONS;
    if (!x->has_options) return;
    x->options = p->option_count < k ? p->option_count : k;
    x->info.options_dropped = p->option_count - x->options;
}

VP_API vp_result vp_prompt_build(const vp_prompt *prompt, char *out, size_t capacity, size_t *needed, vp_prompt_info *info, vp_error *error) {
    const char *const name = prompt && prompt->dataset ? prompt->dataset->name : "prompt";
    vp_impl_prompt_text t = {NULL, 0, 0};
    vp_impl_prompt_plan x;
    size_t i;
    if (!prompt || (!prompt->questions && prompt->question_count) || (!prompt->options && prompt->option_count))
        return vp_fail(error, VP_ERR_RANGE, -1, name, "no record, or a count without its texts");
    for (i = 0; i < prompt->question_count; i++) if (!prompt->questions[i]) return vp_fail(error, VP_ERR_RANGE, -1, "question", "a text is NULL");
    for (i = 0; i < prompt->option_count; i++) if (!prompt->options[i]) return vp_fail(error, VP_ERR_RANGE, -1, "options", "a text is NULL");
    memset(&x, 0, sizeof x);
    x.p = prompt;
    vp_impl_prompt_choose(&x);
    if (!x.messages) return vp_fail(error, VP_ERR_MISMATCH, -1, "question", "the record has no question");
    if (x.messages > 1 && prompt->dataset && prompt->dataset->kind != VP_PROMPT_QUESTIONS)
        return vp_fail(error, VP_ERR_MISMATCH, -1, "questions", "records of this data set have one question each");
    if (x.has_options && !prompt->options) return vp_fail(error, VP_ERR_MISMATCH, -1, "options", "the record has no options to choose from");
    if (x.info.options_dropped && !x.info.style)
        return vp_fail(error, VP_ERR_RANGE, -1, "options", "there are letters for 26 options at most");
    vp_impl_prompt_write(&t, &x);
    if (t.too_long) return vp_fail(error, VP_ERR_RANGE, -1, name, "the prompt is too long");
    if (out && t.bytes < capacity) {
        t.out = out;
        t.bytes = 0;
        vp_impl_prompt_write(&t, &x);
        out[t.bytes] = 0;
    }
    if (needed) *needed = t.bytes;
    if (info) *info = x.info;
    return t.out ? VP_OK : VP_ERR_CAPACITY;
}

#ifdef __cplusplus
}
#endif
#endif /* implementation */
