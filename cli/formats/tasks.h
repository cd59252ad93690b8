/* tasks.h: the known evaluation sets, under all names in common use. A row gives the defaults of lmms-eval and
 * VLMEvalKit for the set: the prompt, the scoring rule, and the longest answer. Sources: lmms-eval 75571cfe
 * (2026-08-06), VLMEvalKit e8e78f05 (2026-08-18). */
#ifndef VLMPROF_CLI_TASKS_H
#define VLMPROF_CLI_TASKS_H
#include <stddef.h>
#include <stdint.h>

/* How a question becomes a prompt. P1: "Answer the question using a single word or phrase."; L1: "Answer with the
 * option's letter from the given choices directly." */
enum prompt_form {
    FORM_NONE, /* the question unchanged */
    FORM_P1,
    FORM_P1_STRIPPED,
    FORM_CAPITALISED,
    FORM_UNANSWERABLE,
    FORM_SINGLE_WORD,
    FORM_MME,
    FORM_STRIPPED,
    FORM_NUMBER,
    FORM_LETTERS,
    FORM_SCIENCE,
    FORM_MMSTAR,
    FORM_MMBENCH,
    FORM_MMMU,
    FORM_MMMU_PRO,
    FORM_MMMU_PRO_COT,
    FORM_MMMU_PRO_VISION_COT,
    FORM_MMMU_PRO_COMPOSITE,
    FORM_MATHVISTA,
    FORM_MATHVISTA_COT,
    FORM_MATHVISTA_SOLUTION,
    FORM_MATHVISTA_OFFICIAL,
    FORM_CAPTION,
    FORM_BRIEF,
    FORM_DESCRIPTION,
    FORM_CHOICE,
    FORM_CHOICE_PRO,
    FORM_CHOICE_PRO_COT,
    FORM_PICTURE_PRO,
    FORM_PICTURE_PRO_COT
};
enum prompt_origin { ORIGIN_NONE, ORIGIN_LMMS, ORIGIN_VLMEVALKIT };

struct task {
    const char *name;    /* its name in the result files */
    const char *aliases; /* folded names, separated by spaces */
    enum prompt_form lmms, vlmevalkit;
    const char *lmms_metric, *vlmevalkit_metric;
    int32_t new_tokens;  /* lmms-eval's limit; 0 if left to the model */
    const char *title;
};

/* The task for a name of an option, a file without its extension, or a repository. NULL if there is none. */
const struct task *task_find(const char *name);

/* All tasks, in the order of the help; NULL after the last one. */
const struct task *task_at(size_t index);

#endif
