/* prompts.c: the prompts of lmms-eval and VLMEvalKit: the text after the pictures. Sources: lmms-eval 75571cfe,
 * tasks/NAME/utils.py and yaml; VLMEvalKit e8e78f05, vlmeval/dataset/image_*.py; MathVista 53d52587,
 * evaluation/build_query.py. */
#include "formats/example.h"

#include "vlmprof_unicode.h"

#include <stdlib.h>
#include <string.h>

static const char P1[] = "\nAnswer the question using a single word or phrase.";
static const char L1[] = "\nAnswer with the option's letter from the given choices directly.";

static void add(struct text_buffer *out, const char *text) { text_add_string(out, text); }
static void add_stripped(struct text_buffer *out, const char *text) {
    const char *end = text + strlen(text);
    vp_unicode_strip(&text, &end);
    text_add(out, text, (size_t)(end - text));
}
/* Python's capitalize(): the first character becomes upper case, all others lower case. */
static void add_capitalised(struct text_buffer *out, const char *text) {
    const char *end = text + strlen(text);
    size_t bytes;
    char buffer[4];
    for (const char *at = text; at < end; at += bytes) {
        uint32_t code = vp_unicode_get(at, end, &bytes);
        if (at == text && code == 0xDF) add(out, "Ss");
        else if (at > text && code == 0x130) add(out, "i\xcc\x87"); /* two characters in Python */
        else {
            code = at == text     ? vp_unicode_upper(code)
                   : code == 0x3A3 ? vp_unicode_lower_sigma(text, at, end, NULL, NULL)
                                   : vp_unicode_lower(code);
            text_add(out, buffer, vp_unicode_put(buffer, code));
        }
    }
}
/* Writes "A. x" and so on, each on its own line; `before` comes first on each line. */
static int add_options(struct text_buffer *out, const struct example *example, const char *form) {
    int count = 0;
    for (int i = 0; i < OPTIONS_MAX; i++) {
        char letter[2] = {(char)('A' + i), 0};
        if (!example->options[i]) continue;
        add(out, count++ ? "\n" : "");
        add(out, form[0] == '(' ? "(" : "");
        add(out, letter);
        add(out, form[0] == '(' ? ") " : ". ");
        add(out, example->options[i]);
    }
    return count;
}
static int has_options(const struct example *example) {
    for (int i = 0; i < OPTIONS_MAX; i++) if (example->options[i]) return 1;
    return 0;
}
static int is(const char *text, const char *word) { return text && !strcmp(text, word); }

/* The instruction of lmms-eval's mathvista_testmini_format. */
static void ask_mathvista(struct text_buffer *out, const struct example *example) {
    struct text_buffer all = {NULL, 0, 0};
    add(&all, example->question);
    if (example->unit) {
        add(&all, " (Unit: ");
        add(&all, example->unit);
        add(&all, ")");
    }
    if (has_options(example)) {
        add(&all, "\n");
        add_options(&all, example, ".");
    }
    add(&all, "\n");
    if (is(example->question_type, "multi_choice")) add(&all, L1 + 1);
    else if (is(example->answer_type, "integer")) add(&all, "Answer the question using a single integer number.");
    else if (is(example->answer_type, "float"))
        add(&all, example->precision == 1
                      ? "Answer the question using a single floating-point number with one decimal place."
                      : "Answer the question using a single floating-point number with two decimal places.");
    else if (is(example->answer_type, "list")) add(&all, "Answer the question using a Python list.");
    add_stripped(out, all.data);
    free(all.data);
}
static void add_hint(struct text_buffer *out, const struct example *example) {
    add(out, "Hint: Please answer the question ");
    if (is(example->question_type, "multi_choice"))
        add(out, "and provide the correct option letter, e.g., A, B, C, D, at the end.");
    else if (is(example->answer_type, "integer"))
        add(out, "requiring an integer answer and provide the final value, e.g., 1, 2, 3, at the end.");
    else if (is(example->answer_type, "float") && example->precision == 1)
        add(out,
            "requiring a floating-point number with one decimal place and provide the final value, e.g., 1.2, 1.3, "
            "1.4, at the end.");
    else if (is(example->answer_type, "float"))
        add(out, "requiring a floating-point number with two decimal places and provide the final value, e.g., 1.23, "
                 "1.34, 1.45, at the end.");
    else
        add(out,
            "requiring a Python list as an answer and provide the final list, e.g., [1, 2, 3], [1.2, 1.3, 1.4], at "
            "the end.");
}
/* Question, unit and choices of the official query. */
static void add_problem(struct text_buffer *out, const struct example *example) {
    add(out, "Question: ");
    add(out, example->question);
    if (example->unit) {
        add(out, " (Unit: ");
        add(out, example->unit);
        add(out, ")");
    }
    if (!has_options(example)) return;
    add(out, "\nChoices:\n");
    add_options(out, example, "(");
}
/* MathVista's query has the hint first; lmms-eval's _cot and _solution have it last, and then `tail`. */
static void ask_problem(struct text_buffer *out, const struct example *example, const char *tail) {
    if (tail) {
        add_problem(out, example);
        add(out, "\n");
    }
    add_hint(out, example);
    if (tail) add(out, tail);
    else {
        add(out, "\n");
        add_problem(out, example);
    }
}
/* VLMEvalKit's multiple choice. */
static void ask_choice(struct text_buffer *out, const struct example *example, const char *request) {
    if (example->hint) {
        add(out, "Hint: ");
        add(out, example->hint);
        add(out, "\n");
    }
    add(out, "Question: ");
    add(out, example->question);
    add(out, "\n");
    if (!has_options(example)) return;
    add(out, "Options:\n");
    add_options(out, example, ".");
    add(out, "\n");
    add(out, request);
}
static void ask_mme(struct text_buffer *out, const char *question) {
    static const char tail[] = " Please answer yes or no.";
    struct text_buffer stripped = {NULL, 0, 0};
    const char *at, *found;
    add_stripped(&stripped, question);
    for (at = stripped.data; (found = strstr(at, tail)) != NULL; at = found + strlen(tail))
        text_add(out, at, (size_t)(found - at));
    add(out, at);
    free(stripped.data);
}
/* Multiple choice of lmms-eval, without the text before the question. */
static void ask_letters(struct text_buffer *out, const struct example *example, const char *gap, const char *request) {
    add(out, example->question);
    add(out, gap);
    add_options(out, example, ".");
    add(out, request);
}

/* MMMU-Pro's instruction to reason and end with a letter. */
static void add_last_line(struct text_buffer *out, const char *options, const char *end) {
    add(out, "The last line of your response should be of the following format: 'Answer: $LETTER' (without quotes) "
             "where LETTER is one of ");
    add(out, options);
    add(out, "Think step by step before answering.");
    add(out, end);
}

void example_ask(struct example *example, enum prompt_form form) {
    static const char pro[] = "Answer with the option letter from the given choices directly.";
    struct text_buffer out = {NULL, 0, 0};
    const char *question = example->question ? example->question : "";
    add(&out, "");
    switch (form) {
    case FORM_P1: add(&out, question); add(&out, P1); break;
    case FORM_P1_STRIPPED: add_stripped(&out, question); add(&out, P1); break;
    case FORM_CAPITALISED: add_capitalised(&out, question); add(&out, P1); break;
    case FORM_UNANSWERABLE:
        add(&out, question);
        add(&out, "\nWhen the provided information is insufficient, respond with 'Unanswerable'.");
        add(&out, P1);
        break;
    case FORM_SINGLE_WORD: add(&out, question); add(&out, "\nAnswer the question with a single word."); break;
    case FORM_MME: ask_mme(&out, question); add(&out, P1); break;
    case FORM_STRIPPED: add_stripped(&out, question); break;
    case FORM_NUMBER: add(&out, question); add(&out, "\nAnswer the question using a single number."); break;
    case FORM_SCIENCE:
        if (example->hint) {
            add(&out, "Context: ");
            add(&out, example->hint);
            add(&out, "\n");
        }
        ask_letters(&out, example, "\n", L1);
        break;
    case FORM_LETTERS: ask_letters(&out, example, "\n", L1); break;
    case FORM_MMSTAR:
        add_stripped(&out, question);
        text_add(&out, L1, strlen(L1) - 1); /* without its full stop */
        break;
    case FORM_MMBENCH:
        if (example->hint) {
            add(&out, example->hint);
            add(&out, " ");
        }
        ask_letters(&out, example, " There are several options:\n", "\n");
        add(&out, L1);
        break;
    case FORM_MMMU:
        add(&out, question);
        add(&out, "\n");
        if (add_options(&out, example, ".")) add(&out, "\n");
        add(&out, has_options(example) ? L1 : P1);
        break;
    case FORM_MMMU_PRO:
    case FORM_MMMU_PRO_COT:
        if (example->question) ask_letters(&out, example, "\n", "\n\n");
        add(&out, form == FORM_MMMU_PRO ? pro : "Answer the following multiple choice question. ");
        if (form == FORM_MMMU_PRO_COT) add_last_line(&out, "options. ", "");
        break;
    case FORM_MMMU_PRO_VISION_COT:
        add(&out, "Write out the multiple-choice question in the image and then solve it. ");
        add_last_line(&out, "options. ", "");
        break;
    case FORM_MMMU_PRO_COMPOSITE:
        add(&out, "Answer with the option letter for each multiple choice question from the given choices directly. "
                  "For each question, the last line of your response should be in the following format: 'No: [id]\n"
                  "Answer: [LETTER]' (without quotes) where LETTER is one of options.");
        break;
    case FORM_MATHVISTA: ask_mathvista(&out, example); break;
    case FORM_MATHVISTA_COT: ask_problem(&out, example, ""); break;
    case FORM_MATHVISTA_SOLUTION: ask_problem(&out, example, "\nSolution:"); break;
    case FORM_MATHVISTA_OFFICIAL: ask_problem(&out, example, NULL); break;
    case FORM_CAPTION: add(&out, "Provide a one-sentence caption for the provided image."); break;
    case FORM_BRIEF: add(&out, "Describe the image briefly."); break;
    case FORM_DESCRIPTION: /* VLMEvalKit's own instruction, if the table has no question */
        if (example->question) add(&out, question);
        else
            add(&out, "Please describe this image in general. Directly provide the description, do not include prefix "
                      "like \"This image depicts\". ");
        break;
    case FORM_CHOICE:
        ask_choice(&out, example, "Please select the correct answer from the options above. \n");
        break;
    case FORM_CHOICE_PRO:
        ask_choice(&out, example, "Answer directly with the option letter from the given choices. ");
        break;
    case FORM_CHOICE_PRO_COT:
        ask_choice(&out, example, "Answer the following multiple-choice question. ");
        if (has_options(example)) add_last_line(&out, "the options. ", " ");
        break;
    case FORM_PICTURE_PRO:
    case FORM_PICTURE_PRO_COT:
        add(&out, "Answer the following multiple-choice question in the image. ");
        if (form == FORM_PICTURE_PRO_COT) add_last_line(&out, "the options. ", " ");
        else add(&out, "Answer directly with the option letter from the given choices. ");
        break;
    case FORM_NONE: add(&out, question); break;
    }
    free(example->prompt);
    example->prompt = out.data;
}
