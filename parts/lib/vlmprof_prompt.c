/* vlmprof_prompt.c: implements what vlmprof_prompt.h declares */
#include "vlmprof_prompt.h"
#include <string.h>

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
    /* other names that the reference accepts */
    {"coco_2014_vqa_multi", "vqa2", 32, VP_PROMPT_QUESTIONS},
    {"coco_captioning", "coco_captioning", 64, VP_PROMPT_CAPTION},
};
static const char vp_impl_prompt_choice_style[] = "a_okvqa_mc";
/* the sixth joins two templates, because the reference's list lacks a comma */
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
    for (int32_t i = 0; name && (dataset = vp_prompt_dataset_at(i)) != NULL; i++)
        if (strcmp(dataset->name, name) == 0) return dataset;
    return NULL;
}
VP_API const vp_prompt_dataset *vp_prompt_dataset_of_style(const char *style) {
    const vp_prompt_dataset *dataset;
    if (!style || strcmp(style, "vqa2") == 0) return NULL;
    for (int32_t i = 0; (dataset = vp_prompt_dataset_at(i)) != NULL; i++)
        if (strcmp(dataset->style, style) == 0) return dataset;
    return NULL;
}

/* parts of the messages */
typedef struct vp_impl_prompt_plan {
    const vp_prompt *prompt;
    const char *fixed; /* replaces the question */
    const char *hint;  /* replaces the question, twice */
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
    for (size_t i = 0; i < plan->messages; i++) {
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
        for (size_t k = 0; k < plan->options; k++) {
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

/* Python: re.match("<img='(.*?)'>", option); the dot does not match a newline */
static int vp_impl_prompt_is_image(const char *option) {
    if (strncmp(option, "<img='", 6) != 0) return 0;
    const char *end = strstr(option + 6, "'>");
    const char *line = strchr(option + 6, '\n');
    return end && (!line || end < line);
}
static int vp_impl_prompt_is_choice(const vp_prompt *prompt) {
    if (prompt->question_type) return strcmp(prompt->question_type, "multiple-choice") == 0;
    return prompt->style ? strcmp(prompt->style, vp_impl_prompt_choice_style) == 0 : prompt->options != NULL;
}

/* applies the rules of the record's data set */
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
    vp_impl_prompt_plan plan = {0};
    if (!prompt || (!prompt->questions && prompt->question_count) || (!prompt->options && prompt->option_count))
        return vp_error_set(error, VP_ERR_RANGE, -1, name, "prompt is NULL, or texts are missing");
    for (size_t i = 0; i < prompt->question_count; i++)
        if (!prompt->questions[i]) return vp_error_set(error, VP_ERR_RANGE, -1, "question", "a text is NULL");
    for (size_t i = 0; i < prompt->option_count; i++)
        if (!prompt->options[i]) return vp_error_set(error, VP_ERR_RANGE, -1, "options", "a text is NULL");
    plan.prompt = prompt;
    vp_impl_prompt_choose(&plan);
    if (!plan.messages) return vp_error_set(error, VP_ERR_MISMATCH, -1, "question", "the record has no question");
    if (plan.messages > 1 && prompt->dataset && prompt->dataset->kind != VP_PROMPT_QUESTIONS)
        return vp_error_set(error, VP_ERR_MISMATCH, -1, "questions", "records of this data set have one question each");
    if (plan.has_options && !prompt->options)
        return vp_error_set(error, VP_ERR_MISMATCH, -1, "options", "the record has no options to choose from");
    if (plan.info.options_dropped && !plan.info.style)
        return vp_error_set(error, VP_ERR_RANGE, -1, "options", "only 26 options can have letters");
    vp_impl_prompt_write(&prompt_text, &plan);
    if (prompt_text.too_long) return vp_error_set(error, VP_ERR_RANGE, -1, name, "the prompt is too long");
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
