/* vlmprof_score_tools.h - v0.2.0 - scoring rules of lmms-eval, VLMEvalKit and official scripts - MIT licence
 *
 * Do not include this file; vlmprof_score.h includes it and declares its rules. Each rule is a metric named after its
 * tool (vp_score_metric_find("mcq_lmms", ..)). It scores as the tool does without a judge model. No rule cleans the
 * prediction.
 * source: VLMEvalKit e8e78f05 (2026-08-18), lmms-eval 75571cfe (2026-08-06), MMMU bb0b95a9, MathVista 53d52587, POPE
 *         08d957b9 */
#ifndef VLMPROF_SCORE_H
#include "vlmprof_score.h"
#endif

#if defined(VLMPROF_SCORE_IMPLEMENTATION_DONE) && !defined(VLMPROF_SCORE_TOOLS_IMPLEMENTATION_DONE)
#define VLMPROF_SCORE_TOOLS_IMPLEMENTATION_DONE

static int vp_impl_tool_has(vp_impl_score_span in, const char *text) {
    return vp_impl_score_search(in, vp_impl_score_span_of(text), 0) != NULL;
}
static int vp_impl_tool_is(vp_impl_score_span span, const char *text) {
    return vp_impl_score_same(span, vp_impl_score_span_of(text));
}
/* Stores a text as the extracted answer. */
static void vp_impl_tool_parsed(vp_impl_score_pool *pool, vp_impl_score_span span, vp_score_outcome *outcome) {
    outcome->parsed = vp_impl_score_keep(pool, span);
}
static void vp_impl_tool_letter(vp_impl_score_pool *pool, char letter, vp_score_outcome *outcome) {
    vp_impl_tool_parsed(pool, vp_impl_score_span_from(&letter, &letter + (letter != 0)), outcome);
    if (letter >= 'A' && letter <= 'Y') outcome->option_index = letter - 'A';
}
static const char *vp_impl_tool_answer(const vp_score_sample *sample) {
    return sample->reference_count ? sample->references[0] : "";
}
/* Returns 1 if the answer is this letter. */
static int vp_impl_tool_right(const vp_score_sample *sample, char letter) {
    const char *answer = vp_impl_tool_answer(sample);
    return letter && answer[0] == letter && !answer[1];
}
/* The letter of option i; 0 if there is no such option. An empty text is not an option, because VLMEvalKit's table has
 * no cell for it. */
static char vp_impl_tool_option(const vp_score_sample *sample, size_t i) {
    return i < sample->option_count && i < 26 && sample->options[i][0] ? (char)('A' + i) : (char)0;
}

/* ---- words */
typedef struct vp_impl_tool_words { vp_impl_score_span *words; size_t count; } vp_impl_tool_words;
/* str.split(); with `gaps`, these ASCII characters are white space too */
static vp_impl_tool_words vp_impl_tool_split(vp_impl_score_pool *pool, vp_impl_score_span span, const char *gaps) {
    vp_impl_tool_words out;
    const char *at, *end = span.text + span.bytes, *start = NULL;
    size_t bytes;
    out.count = 0;
    out.words = (vp_impl_score_span *)vp_impl_score_take(pool, span.bytes / 2 + 1, sizeof *out.words);
    for (at = span.text; out.words && at < end; at += bytes) {
        uint32_t code = vp_unicode_get(at, end, &bytes);
        int is_gap = vp_unicode_is_space(code) || (code && code < 0x80 && gaps && strchr(gaps, (int)code));
        if (!is_gap && !start) start = at;
        if (is_gap && start) {
            out.words[out.count++] = vp_impl_score_span_from(start, at);
            start = NULL;
        }
    }
    if (out.words && start) out.words[out.count++] = vp_impl_score_span_from(start, end);
    return out;
}
/* the index of the first occurrence of a word; the count if there is none */
static size_t vp_impl_tool_word(const vp_impl_tool_words *words, const char *word) {
    size_t i = 0;
    while (i < words->count && !vp_impl_tool_is(words->words[i], word)) i++;
    return i;
}

/* ---- multiple choice of VLMEvalKit: matching_util.py, can_infer */
/* the letter X of the first "answer is X", as a capital; 0 if there is none */
static char vp_impl_tool_answer_is(vp_impl_score_span span) {
    static const char phrase[] = "answer", verb[] = "is";
    const char *at, *end = span.text + span.bytes, *rest;
    size_t bytes, spaces;
    for (at = span.text; at < end; at++) {
        if ((size_t)(end - at) < sizeof phrase || !vp_impl_score_is_word(at, sizeof phrase - 1, phrase)) continue;
        rest = at + sizeof phrase - 1;
        for (spaces = 0; rest < end && vp_unicode_is_space(vp_unicode_get(rest, end, &bytes)); spaces++) rest += bytes;
        if (!spaces || end - rest < 2 || !vp_impl_score_is_word(rest, 2, verb)) continue;
        rest += 2;
        for (spaces = 0; rest < end && vp_unicode_is_space(vp_unicode_get(rest, end, &bytes)); spaces++) rest += bytes;
        while (rest < end && *rest == '*') rest++;
        if (spaces && rest < end && ((*rest >= 'A' && *rest <= 'D') || (*rest >= 'a' && *rest <= 'd')))
            return (char)(*rest & ~32);
    }
    return 0;
}
/* the letter, Z, or 0 if nothing was extracted */
static char vp_impl_tool_infer_letter(vp_impl_score_pool *pool, const vp_score_sample *sample,
                                      vp_impl_score_span span) {
    static const char *const refusals[] = {"Sorry, I can't help with images of people yet.",
                                           "I can't process this file.", "I'm sorry, but without the image provided",
                                           "Cannot determine the answer"};
    const vp_impl_score_pool before = *pool;
    vp_impl_tool_words words;
    size_t i, count = 0, place;
    char letter, found = 0, name[2] = {0, 0};
    if (vp_impl_tool_has(span, "Failed to obtain answer via API")) return 0;
    for (i = 0; i < 4; i++) if (vp_impl_tool_has(span, refusals[i])) return 'Z';
    words = vp_impl_tool_split(pool, span, ".()[],:;!*#{}");
    for (i = 0; i < sample->option_count; i++) {
        name[0] = vp_impl_tool_option(sample, i);
        place = name[0] ? vp_impl_tool_word(&words, name) : words.count;
        if (place == words.count) continue;
        count++;
        found = place + 4 >= words.count ? name[0] : (char)0;
    }
    if (!count && vp_impl_tool_word(&words, "Z") < words.count) found = 'Z';
    vp_impl_score_give_back(pool, &before);
    if (found && count <= 1) return found;
    letter = vp_impl_tool_answer_is(span);
    return letter && vp_impl_tool_option(sample, (size_t)(letter - 'A')) ? letter : (char)0;
}
static char vp_impl_tool_infer_text(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_impl_score_span span) {
    const vp_impl_score_pool before = *pool;
    vp_impl_score_span lower = vp_impl_score_lower(pool, span);
    size_t i, length = 0, count = 0;
    char found = 0;
    for (i = 0; i < sample->option_count; i++)
        if (vp_impl_tool_option(sample, i)) length += vp_impl_score_length(vp_impl_score_span_of(sample->options[i]));
    for (i = 0; i < sample->option_count && vp_impl_score_length(lower) <= 2 * length; i++) {
        const vp_impl_score_pool held = *pool;
        if (vp_impl_tool_option(sample, i)
            && vp_impl_score_search(lower, vp_impl_score_lower_all(pool, sample->options[i]), 0)) {
            found = vp_impl_tool_option(sample, i);
            count++;
        }
        vp_impl_score_give_back(pool, &held);
    }
    vp_impl_score_give_back(pool, &before);
    return count == 1 ? found : (char)0;
}
static char vp_impl_tool_infer(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_impl_score_span span) {
    char letter = vp_impl_tool_infer_letter(pool, sample, span);
    return letter ? letter : vp_impl_tool_infer_text(pool, sample, span);
}
static void vp_impl_tool_mcq(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_impl_score_span span,
                             vp_score_outcome *outcome) {
    char letter = vp_impl_tool_infer(pool, sample, span);
    outcome->is_unread = !letter ? 1 : letter == 'Z' ? 2 : 0;
    vp_impl_tool_letter(pool, letter ? letter : 'Z', outcome);
    outcome->score = vp_impl_tool_right(sample, letter);
}
static void vp_impl_tool_mcq_vk(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    vp_impl_tool_mcq(pool, sample, vp_impl_score_span_of(sample->prediction), outcome);
}
/* The text after the last line that begins with "Answer:", or its only capital letter if there is exactly one. */
static vp_impl_score_span vp_impl_tool_cot(vp_impl_score_span span) {
    static const char mark[] = "Answer:";
    const char *at = span.text, *end = span.text + span.bytes, *stop, *letter = NULL;
    vp_impl_score_span found = span;
    for (; at <= end; at = stop + 1) {
        stop = at < end ? (const char *)memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (!stop) stop = end;
        vp_impl_score_span line = vp_impl_score_trimmed(vp_impl_score_span_from(at, stop));
        if (line.bytes >= sizeof mark - 1 && !memcmp(line.text, mark, sizeof mark - 1))
            found = vp_impl_score_trimmed(
                vp_impl_score_span_from(line.text + sizeof mark - 1, line.text + line.bytes));
    }
    if (found.text == span.text) return span;
    for (size_t i = 0; i < found.bytes; i++) {
        if (found.text[i] < 'A' || found.text[i] > 'Z') continue;
        if (letter && *letter != found.text[i]) return found;
        letter = found.text + i;
    }
    return letter ? vp_impl_score_span_from(letter, letter + 1) : found;
}
/* MMMU's open questions become a choice between the answer and "Other Answers". */
static void vp_impl_tool_mmmu_vk(vp_impl_score_pool *pool, const vp_score_sample *sample, int is_cot,
                                 vp_score_outcome *outcome) {
    const vp_impl_score_span whole = vp_impl_score_span_of(sample->prediction),
                             span = is_cot ? vp_impl_tool_cot(whole) : whole;
    static const char *const right[] = {"A"};
    const char *made[2];
    vp_score_sample open = *sample;
    const char *answer = vp_impl_tool_answer(sample);
    if (vp_impl_tool_option(sample, 0)) {
        vp_impl_tool_mcq(pool, sample, span, outcome);
        return;
    }
    made[0] = answer;
    made[1] = "Other Answers";
    open.options = made;
    open.option_count = 2;
    if (!(answer[0] >= 'A' && answer[0] <= 'Z' && !answer[1])) {
        open.references = right;
        open.reference_count = 1;
    }
    vp_impl_tool_mcq(pool, &open, span, outcome);
}

/* ---- multiple choice of lmms-eval: _task_utils/mcq_extract.py */
typedef struct vp_impl_tool_best { char letter; int priority; size_t place; } vp_impl_tool_best;
static void vp_impl_tool_offer(vp_impl_tool_best *best, char letter, int priority, size_t place) {
    if (best->letter && (priority < best->priority || (priority == best->priority && place <= best->place))) return;
    best->letter = letter;
    best->priority = priority;
    best->place = place;
}
static void vp_impl_tool_forms(vp_impl_score_span span, char letter, vp_impl_tool_best *best) {
    static const char *const forms[] = {"(X)", "X.", "X:", "X)", "X "};
    for (int i = 0; i < 5; i++) {
        char form[4];
        size_t bytes = strlen(forms[i]), k;
        for (k = 0; k <= bytes; k++) form[k] = forms[i][k] == 'X' ? letter : forms[i][k];
        const char *at = vp_impl_score_search(span, vp_impl_score_span_from(form, form + bytes), 1);
        if (at) vp_impl_tool_offer(best, letter, 6 - i, (size_t)(at - span.text));
    }
}
static int vp_impl_tool_is_letter(const char *at, const char *end) {
    size_t bytes;
    if (at >= end) return 0;
    uint32_t code = vp_unicode_get(at, end, &bytes);
    return vp_unicode_class(code) == VP_UNICODE_LETTER;
}
/* Returns 1 if the character before `at` is a letter. */
static int vp_impl_tool_letter_before(const char *start, const char *at, const char *end) {
    const char *before = at;
    if (before == start) return 0;
    do before--;
    while (before > start && ((unsigned char)*before & 0xC0) == 0x80);
    return vp_impl_tool_is_letter(before, end);
}
static void vp_impl_tool_phrases(vp_impl_score_pool *pool, vp_impl_score_span span, const char *letters,
                                 vp_impl_tool_best *best) {
    static const char *const phrases[] = {
        "answer is", "correct answer is", "best answer is", "correct option is", "best option is", "choice is",
        "correct choice is", "the answer is", "the correct answer is", "the best answer is", "the correct option is",
        "the best option is", "the choice is", "the correct choice is", "i choose", "i select", "i pick",
        "my answer is", "my choice is", "\xec\x98\xb5\xec\x85\x98", "\xec\xa0\x95\xeb\x8b\xb5\xec\x9d\x80",
        "\xeb\x8b\xb5\xec\x9d\x80", "\xeb\x8b\xb5:", "\xe7\xad\x94\xe6\xa1\x88\xe6\x98\xaf",
        "\xe7\xad\x94\xe6\xa1\x88\xe4\xb8\xba", "\xe9\x80\x89", "\xe7\xad\x94\xe3\x81\x88\xe3\x81\xaf"};
    vp_impl_score_span lower = vp_impl_score_lower(pool, span);
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        const char *at = vp_impl_score_search(lower, vp_impl_score_span_of(phrases[i]), 0), *from, *letter;
        size_t count, bytes;
        if (!at) continue;
        /* the position is counted in characters of the lower-cased text but applied to the original text */
        count = vp_impl_score_length(vp_impl_score_span_from(lower.text, at + strlen(phrases[i])));
        for (from = span.text; count && from < span.text + span.bytes; count--) {
            vp_unicode_get(from, span.text + span.bytes, &bytes);
            from += bytes;
        }
        for (letter = letters; *letter; letter++) {
            const char *found = (const char *)memchr(from, *letter, (size_t)(span.text + span.bytes - from));
            if (found) vp_impl_tool_offer(best, *letter, 7, (size_t)(found - span.text));
        }
    }
}
/* the letter among `letters`, or 0 */
static char vp_impl_tool_extract(vp_impl_score_pool *pool, vp_impl_score_span span, const char *letters) {
    static const char stripped[] = ",.!?;:'\"";
    const vp_impl_score_pool before = *pool;
    vp_impl_tool_best best = {0, 0, 0};
    const char *letter, *end;
    span = vp_impl_score_trimmed(span);
    for (size_t i = 0; stripped[i]; i++) span = vp_impl_score_without(span, stripped[i]);
    char *copy = (char *)vp_impl_score_take(pool, span.bytes + 3, 1);
    if (!copy) return 0;
    copy[0] = copy[span.bytes + 1] = ' ';
    if (span.bytes) memcpy(copy + 1, span.text, span.bytes);
    vp_impl_score_span padded = vp_impl_score_span_from(copy, copy + span.bytes + 2);
    for (letter = letters; *letter; letter++) vp_impl_tool_forms(padded, *letter, &best);
    vp_impl_tool_phrases(pool, padded, letters, &best);
    span = vp_impl_score_trimmed(span); /* removes spaces next to the stripped signs */
    end = span.text + span.bytes;
    for (letter = letters; *letter && span.bytes; letter++) {
        if (*span.text == *letter && !vp_impl_tool_is_letter(span.text + 1, end))
            vp_impl_tool_offer(&best, *letter, 10, 0);
        if (end[-1] == *letter && !vp_impl_tool_letter_before(span.text, end - 1, end))
            vp_impl_tool_offer(&best, *letter, 9, span.bytes - 1);
    }
    for (letter = letters; *letter && !best.priority; letter++) {
        const char *at = vp_impl_score_search(padded, vp_impl_score_span_from(letter, letter + 1), 1);
        if (at) vp_impl_tool_offer(&best, *letter, 0, (size_t)(at - padded.text));
    }
    vp_impl_score_give_back(pool, &before);
    return best.letter;
}
/* the given choices if they are capital letters; otherwise one letter per option, or A to D without options */
static void vp_impl_tool_choices(const vp_score_sample *sample, char letters[33]) {
    size_t i, count = sample->option_count < 26 ? sample->option_count : 26;
    int are_letters = count > 0;
    for (i = 0; i < count; i++)
        are_letters &= sample->options[i][0] >= 'A' && sample->options[i][0] <= 'Z' && !sample->options[i][1];
    if (!count) count = 4;
    for (i = 0; i < count; i++) letters[i] = are_letters ? sample->options[i][0] : (char)('A' + i);
    letters[count] = 0;
}
static void vp_impl_tool_mcq_lmms(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    char letters[33], letter;
    vp_impl_tool_choices(sample, letters);
    letter = vp_impl_tool_extract(pool, vp_impl_score_span_of(sample->prediction), letters);
    vp_impl_tool_letter(pool, letter, outcome);
    outcome->is_unread = !letter;
    outcome->score = vp_impl_tool_right(sample, letter);
}
static void vp_impl_tool_realworld(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    const char *answer = vp_impl_tool_answer(sample);
    if (answer[0] >= 'A' && answer[0] <= 'D' && !answer[1]) {
        char letter = vp_impl_tool_extract(pool, vp_impl_score_span_of(sample->prediction), "ABCD");
        vp_impl_tool_letter(pool, letter, outcome);
        outcome->is_unread = !letter;
        outcome->score = vp_impl_tool_right(sample, letter);
        return;
    }
    vp_impl_score_span lower = vp_impl_score_trimmed(vp_impl_score_lower_all(pool, sample->prediction));
    while (lower.bytes && lower.text[lower.bytes - 1] == '.') lower.bytes--;
    vp_impl_tool_parsed(pool, lower, outcome);
    outcome->score = vp_impl_score_same(lower, vp_impl_score_lower_all(pool, answer));
}
/* mmbench_evals.py without a judge: tries unchanged words, then twelve forms, then the option's text */
static char vp_impl_tool_mmbench_prefetch(vp_impl_score_pool *pool, const vp_score_sample *sample) {
    static const char *const forms[] = {"X",  "X.", "X,",  "X:",  "X)",  "X).", "(X)",
                                        "(X).", ":X", ":X,", ":X.", ":X)", ":X)."};
    vp_impl_score_span span = vp_impl_score_span_of(sample->prediction), lower;
    vp_impl_tool_words words = vp_impl_tool_split(pool, span, NULL);
    size_t form, i, count;
    char found = 0, letter;
    for (form = 0; form < sizeof forms / sizeof *forms; form++) {
        for (count = 0, letter = 'A'; letter <= 'E'; letter++) {
            char word[8];
            for (i = 0; i <= strlen(forms[form]); i++) word[i] = forms[form][i] == 'X' ? letter : forms[form][i];
            if (vp_impl_tool_word(&words, word) == words.count) continue;
            count++;
            found = letter;
        }
        if (count == 1 && (form || words.count <= 3 || vp_impl_tool_word(&words, "A") == words.count)) return found;
    }
    lower = vp_impl_score_lower(pool, span);
    for (i = 0, count = 0; i < sample->option_count && i < 4; i++)
        if (sample->options[i][0] &&
            vp_impl_score_search(lower, vp_impl_score_lower_all(pool, sample->options[i]), 0)) {
            found = (char)('A' + i);
            count++;
        }
    return count == 1 ? found : (char)0;
}
static void vp_impl_tool_mmbench(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    char letters[33], letter = vp_impl_tool_mmbench_prefetch(pool, sample);
    size_t i, count = 0;
    for (i = 0; i < sample->option_count && i < 26; i++)
        if (vp_impl_tool_option(sample, i)) letters[count++] = vp_impl_tool_option(sample, i);
    letters[count] = 0;
    if (!letter) letter = vp_impl_tool_extract(pool, vp_impl_score_span_of(sample->prediction), letters);
    vp_impl_tool_letter(pool, letter, outcome);
    outcome->is_unread = !letter;
    outcome->score = vp_impl_tool_right(sample, letter);
}

/* ---- short rules of lmms-eval */
static void vp_impl_tool_punctuation_rule(vp_impl_score_span span, vp_impl_score_text_out *out) {
    for (size_t i = 0; i < span.bytes; i++) {
        unsigned char byte = (unsigned char)span.text[i];
        int is_mark = (byte >= 33 && byte <= 47) || (byte >= 58 && byte <= 64) || (byte >= 91 && byte <= 96)
                      || (byte >= 123 && byte <= 126);
        if (!is_mark) vp_impl_score_text_add(out, span.text + i, 1);
    }
}
static vp_impl_score_span vp_impl_tool_bare(vp_impl_score_pool *pool, vp_impl_score_span span) {
    return vp_impl_score_map(pool, vp_impl_score_lower(pool, vp_impl_score_trimmed(span)),
                             vp_impl_tool_punctuation_rule);
}
static void vp_impl_tool_ai2d(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    vp_impl_score_span span = vp_impl_score_span_of(sample->prediction);
    const char *start = span.text, *end = span.text + span.bytes;
    vp_unicode_strip(&start, &end);
    end = span.text + span.bytes;
    if (end - start >= 2 && *start >= 'A' && *start <= 'Z' && start[1] == '.')
        span = vp_impl_score_span_from(start, start + 1);
    vp_impl_tool_parsed(pool, vp_impl_score_trimmed(span), outcome);
    outcome->score = vp_impl_score_same(vp_impl_tool_bare(pool, span),
                                        vp_impl_tool_bare(pool, vp_impl_score_span_of(vp_impl_tool_answer(sample))));
}
static void vp_impl_tool_scienceqa(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    vp_impl_score_span span = vp_impl_score_trimmed(vp_impl_score_span_of(sample->prediction));
    const char *answer = vp_impl_tool_answer(sample);
    outcome->score = vp_impl_score_same(vp_impl_score_lower(pool, span), vp_impl_score_lower_all(pool, answer));
    if (span.bytes >= 2 && span.text[0] >= 'A' && span.text[0] <= 'Z' && span.text[1] == '.' && !answer[1])
        outcome->score = span.text[0] == answer[0];
}
static void vp_impl_tool_seed(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    vp_impl_score_span span = vp_impl_score_trimmed(vp_impl_score_span_of(sample->prediction));
    size_t bytes = 0;
    if (span.bytes) vp_unicode_get(span.text, span.text + span.bytes, &bytes);
    span.bytes = bytes;
    vp_impl_tool_parsed(pool, span, outcome);
    outcome->score = vp_impl_score_same(vp_impl_score_lower(pool, span),
                                        vp_impl_score_lower_all(pool, vp_impl_tool_answer(sample)));
}

/* ---- MMMU */
/* the choice in lmms-eval and MMMU-Pro; -1 if the tool picks at random */
static int32_t vp_impl_tool_mmmu_choice(vp_impl_score_pool *pool, const vp_score_sample *sample) {
    static const char stripped[] = ",.!?;:'";
    const char *const forms[] = {"(X)", "X ", "X."};
    vp_impl_score_span span = vp_impl_score_span_of(sample->prediction), padded, lower;
    const char *last = NULL, *at;
    size_t i, form, count;
    int32_t found = -1, by_text = -1;
    for (i = 0; stripped[i]; i++) span = vp_impl_score_without(span, stripped[i]);
    char *copy = (char *)vp_impl_score_take(pool, span.bytes + 3, 1);
    if (!copy) return -1;
    copy[0] = copy[span.bytes + 1] = ' ';
    if (span.bytes) memcpy(copy + 1, span.text, span.bytes);
    padded = vp_impl_score_span_from(copy, copy + span.bytes + 2);
    for (form = 0; form < 3 && found < 0; form++)
        for (i = 0, count = 0; i < sample->option_count && i < 26; i++) {
            char text[4], place[4];
            size_t bytes = strlen(forms[form]), k;
            for (k = 0; k <= bytes; k++) text[k] = forms[form][k] == 'X' ? (char)('A' + i) : forms[form][k];
            if (!vp_impl_tool_has(padded, text)) continue;
            place[0] = form ? ' ' : '(';
            place[1] = (char)('A' + i);
            place[2] = form ? ' ' : ')';
            at = vp_impl_score_search(padded, vp_impl_score_span_from(place, place + 3), 1);
            if (!count++ || (at && (!last || at > last))) { /* the last of those found; if none is, the first */
                found = (int32_t)i;
                last = at;
            }
        }
    vp_impl_tool_words words = vp_impl_tool_split(pool, padded, NULL);
    lower = vp_impl_score_lower(pool, padded);
    for (i = 0; found < 0 && words.count > 5 && i < sample->option_count && i < 26; i++) {
        at = vp_impl_score_search(lower, vp_impl_score_lower_all(pool, sample->options[i]), 1);
        if (!at || (last && at <= last)) continue;
        last = at;
        by_text = (int32_t)i;
    }
    return found < 0 ? by_text : found;
}
static void vp_impl_tool_unparsed(vp_score_outcome *outcome) {
    outcome->is_unparsed = 1;
    outcome->reason = "no answer was found: the tool picks at random";
}
static void vp_impl_tool_picked(vp_impl_score_pool *pool, const vp_score_sample *sample, int32_t index,
                                vp_score_outcome *outcome) {
    outcome->score = (double)NAN;
    if (index < 0) {
        vp_impl_tool_unparsed(outcome);
        return;
    }
    vp_impl_tool_letter(pool, (char)('A' + index), outcome);
    outcome->option_index = index;
    outcome->score = vp_impl_tool_right(sample, (char)('A' + index));
}
/* MMMU-Pro's script first searches after the last "Answer:". */
static void vp_impl_tool_pro(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    static const char mark[] = "Answer:";
    vp_impl_score_span span = vp_impl_score_span_of(sample->prediction);
    const char *at = vp_impl_score_search(span, vp_impl_score_span_of(mark), 1);
    size_t i, count = 0;
    int32_t found = -1;
    for (i = 0; at && i < sample->option_count && i < 26; i++)
        if (strchr(at + strlen(mark), (int)('A' + i))) {
            found = (int32_t)i;
            count++;
        }
    vp_impl_tool_picked(pool, sample, count == 1 ? found : vp_impl_tool_mmmu_choice(pool, sample), outcome);
}
static void vp_impl_tool_pro_lmms(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    if (!sample->question_type || strcmp(sample->question_type, "vision")) {
        vp_impl_tool_picked(pool, sample, vp_impl_tool_mmmu_choice(pool, sample), outcome);
        return;
    }
    vp_impl_tool_parsed(pool, vp_impl_score_span_of(sample->prediction), outcome);
    outcome->score = !strcmp(sample->prediction, vp_impl_tool_answer(sample));
}
static void vp_impl_tool_mmmu_lmms(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    int is_open = sample->question_type ? !strcmp(sample->question_type, "open") : !sample->option_count;
    outcome->score = 0;
    /* lmms-eval searches for the reference in each letter of the answer, which finds only empty references */
    for (size_t i = 0; is_open && i < sample->reference_count; i++)
        if (!vp_impl_score_trimmed(vp_impl_score_span_of(sample->references[i])).bytes) outcome->score = 1;
    if (!is_open) vp_impl_tool_picked(pool, sample, vp_impl_tool_mmmu_choice(pool, sample), outcome);
}

/* ---- yes and no */
/* process_punctuation: punctuation next to a space is deleted, other punctuation becomes a space, and periods are
 * deleted. after_digit = 1 keeps a period after a digit (VLMEvalKit). */
static void vp_impl_tool_points(vp_impl_score_span span, vp_impl_score_text_out *out, int after_digit) {
    unsigned char deleted[sizeof vp_impl_score_punctuation] = {0};
    const char *at, *end = span.text + span.bytes;
    uint32_t before = 0, before2 = 0, code, next;
    size_t bytes, more, dropped = 0;
    int index;
    for (at = span.text; at < end; at += bytes) {
        code = vp_unicode_get(at, end, &bytes);
        if (before == ' ' && (index = vp_impl_score_punctuation_index(code)) >= 0) deleted[index] = 1;
        if (code == ' ' && (index = vp_impl_score_punctuation_index(before)) >= 0) deleted[index] = 1;
        if (before == ',' && vp_unicode_is_digit(before2) && vp_unicode_is_digit(code))
            memset(deleted, 1, sizeof deleted);
        before2 = before;
        before = code;
    }
    for (at = span.text, before = 0; at < end; at += bytes) {
        code = vp_unicode_get(at, end, &bytes);
        index = vp_impl_score_punctuation_index(code);
        if (index >= 0 && deleted[index]) continue;
        if (index >= 0) code = ' ';
        if (code == '.' && dropped < 32 && !(after_digit && vp_unicode_is_digit(before))) {
            for (next = 0, more = bytes; at + more < end;) { /* the next character that is not deleted */
                size_t step;
                next = vp_unicode_get(at + more, end, &step);
                index = vp_impl_score_punctuation_index(next);
                if (index < 0 || !deleted[index]) break;
                more += step;
                next = 0;
            }
            if (!vp_unicode_is_digit(next)) {
                dropped++;
                before = '.';
                continue;
            }
        }
        vp_impl_score_text_code(out, code);
        before = code;
    }
}
static void vp_impl_tool_points_vk(vp_impl_score_span span, vp_impl_score_text_out *out) {
    vp_impl_tool_points(span, out, 1);
}
static void vp_impl_tool_points_lmms(vp_impl_score_span span, vp_impl_score_text_out *out) {
    vp_impl_tool_points(span, out, 0);
}
static void vp_impl_tool_same_word(vp_impl_score_pool *pool, const vp_score_sample *sample, const char *word,
                                   vp_score_outcome *outcome) {
    vp_impl_tool_parsed(pool, vp_impl_score_span_of(word), outcome);
    outcome->is_unread = !strcmp(word, "Unknown") || !strcmp(word, "other");
    outcome->score = vp_impl_score_same(vp_impl_score_lower_all(pool, word),
                                        vp_impl_score_lower_all(pool, vp_impl_tool_answer(sample)));
}
static void vp_impl_tool_yes_no(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    vp_impl_score_span span = vp_impl_score_map(pool, vp_impl_score_lower_all(pool, sample->prediction),
                                                vp_impl_tool_points_vk);
    vp_impl_tool_words words = vp_impl_tool_split(pool, span, NULL);
    int yes = vp_impl_tool_word(&words, "yes") < words.count, no = vp_impl_tool_word(&words, "no") < words.count;
    vp_impl_tool_same_word(pool, sample, yes && !no ? "Yes" : no && !yes ? "No" : "Unknown", outcome);
}
static void vp_impl_tool_no_stops_rule(vp_impl_score_span span, vp_impl_score_text_out *out) {
    for (size_t i = 0; i < span.bytes; i++) if (span.text[i] != '.') vp_impl_score_text_add(out, span.text + i, 1);
}
static void vp_impl_tool_mme(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    vp_impl_score_span span = vp_impl_score_map(
        pool, vp_impl_score_trimmed(vp_impl_score_lower_all(pool, sample->prediction)), vp_impl_tool_no_stops_rule);
    const char *word = "other", *at = span.text, *end = span.text + span.bytes;
    size_t i, bytes;
    if (vp_impl_tool_is(span, "yes") || vp_impl_tool_is(span, "no")) word = span.text;
    else if (vp_impl_score_length(span) == 1) word = *at == 'y' ? "yes" : *at == 'n' ? "no" : "other";
    else {
        for (i = 0; i < 4 && at < end; i++, at += bytes) vp_unicode_get(at, end, &bytes);
        span = vp_impl_score_span_from(span.text, at);
        word = vp_impl_tool_has(span, "yes") ? "yes" : vp_impl_tool_has(span, "no") ? "no" : "other";
    }
    vp_impl_tool_same_word(pool, sample, word, outcome);
}
static void vp_impl_tool_pope_lmms(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    vp_impl_score_span span = vp_impl_score_trimmed(vp_impl_score_lower_all(pool, sample->prediction));
    vp_impl_tool_parsed(pool, span, outcome);
    outcome->score = vp_impl_score_same(span, vp_impl_score_lower_trimmed(pool, vp_impl_tool_answer(sample)));
}
/* the words of the first sentence, commas removed, split at single spaces */
static void vp_impl_tool_pope(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    const char *end = strchr(sample->prediction, '.'), *at;
    char *copy = (char *)vp_impl_score_take(pool, strlen(sample->prediction) + 1, 1);
    size_t bytes = 0;
    int is_no = 0;
    if (!copy) return;
    if (!end) end = sample->prediction + strlen(sample->prediction);
    for (at = sample->prediction; at <= end; at++) {
        if (at < end && *at == ',') continue;
        if (at < end && *at != ' ') {
            copy[bytes++] = *at;
            continue;
        }
        copy[bytes] = 0;
        is_no |= !strcmp(copy, "No") || !strcmp(copy, "not") || !strcmp(copy, "no");
        bytes = 0;
    }
    vp_impl_tool_same_word(pool, sample, is_no ? "no" : "yes", outcome);
}

/* ---- texts and numbers */
static void vp_impl_tool_anls(vp_impl_score_pool *pool, const vp_score_sample *sample, int is_stripped,
                              vp_score_outcome *outcome) {
    vp_impl_score_span span = vp_impl_score_span_of(sample->prediction), wanted;
    size_t i, length, own;
    double least = 1, distance;
    if (is_stripped) span = vp_impl_score_trimmed(span);
    own = vp_impl_score_length(vp_impl_score_map(pool, span, vp_impl_score_upper_rule));
    wanted = vp_impl_score_map(pool, vp_impl_score_lower(pool, span), vp_impl_score_collapse_rule);
    for (i = 0; i < sample->reference_count; i++) {
        const vp_impl_score_pool before = *pool;
        vp_impl_score_span one = vp_impl_score_span_of(sample->references[i]);
        length = vp_impl_score_length(vp_impl_score_map(pool, one, vp_impl_score_upper_rule));
        if (length < own) length = own;
        one = vp_impl_score_map(pool, vp_impl_score_lower(pool, one), vp_impl_score_collapse_rule);
        distance = length ? (double)vp_impl_score_distance(pool, one, wanted) / (double)length : 0;
        if (distance < least) least = distance;
        vp_impl_score_give_back(pool, &before);
    }
    outcome->score = 1 - least < 0.5 ? 0 : 1 - least;
}
/* the words of process_digit_article: numbers, articles, contractions */
static void vp_impl_tool_words_rule(vp_impl_score_span span, vp_impl_score_text_out *out) {
    vp_impl_score_word_out collector;
    const char *at, *end = span.text + span.bytes;
    size_t bytes;
    memset(&collector, 0, sizeof collector);
    collector.out = out;
    for (at = span.text; at < end; at += bytes) vp_impl_score_word_code(&collector, vp_unicode_get(at, end, &bytes));
    vp_impl_score_word_end(&collector);
}
/* word_tokenize of lmms-eval's EvalAIAnswerProcessor */
static void vp_impl_tool_tokenise_rule(vp_impl_score_span span, vp_impl_score_text_out *out) {
    for (size_t i = 0; i < span.bytes; i++) {
        if (span.text[i] == ',' || span.text[i] == '?') continue;
        if (span.text[i] == '\'') { /* "'s", even with a comma between the two */
            size_t next = i + 1;
            while (next < span.bytes && (span.text[next] == ',' || span.text[next] == '?')) next++;
            if (next < span.bytes && span.text[next] == 's') vp_impl_score_text_add(out, " ", 1);
        }
        vp_impl_score_text_add(out, span.text + i, 1);
    }
}
static vp_impl_score_span vp_impl_tool_process(vp_impl_score_pool *pool, const char *text, int metric) {
    vp_impl_score_span span = vp_impl_score_span_of(text);
    if (metric == VP_SCORE_TEXTVQA_LMMS)
        span = vp_impl_score_map(pool, vp_impl_score_lower(pool, span), vp_impl_tool_tokenise_rule);
    span = vp_impl_score_map(pool, span, vp_impl_score_official_rule);
    span = vp_impl_score_map(pool, span,
                             metric == VP_SCORE_VQA_VK ? vp_impl_tool_points_vk : vp_impl_tool_points_lmms);
    return vp_impl_score_map(pool, vp_impl_score_lower(pool, span), vp_impl_tool_words_rule);
}
/* Leaves out one reference at a time. The score is the mean of min(matches / 3, 1), both sides processed. */
static void vp_impl_tool_vqa(vp_impl_score_pool *pool, const vp_score_sample *sample, int metric,
                             vp_score_outcome *outcome) {
    vp_impl_score_span wanted = vp_impl_tool_process(pool, sample->prediction, metric);
    size_t i, matches = 0, others;
    double sum;
    vp_impl_tool_parsed(pool, wanted, outcome);
    for (i = 0; i < sample->reference_count; i++) {
        const vp_impl_score_pool before = *pool;
        matches += (size_t)vp_impl_score_same(vp_impl_tool_process(pool, sample->references[i], metric), wanted);
        vp_impl_score_give_back(pool, &before);
    }
    others = matches ? matches - 1 : 0;
    sum = (double)matches * (others >= 3 ? 1.0 : (double)others / 3.0);
    sum += (double)(sample->reference_count - matches) * (matches >= 3 ? 1.0 : (double)matches / 3.0);
    outcome->score = sum / (double)sample->reference_count;
}
/* Converts full-width ASCII to ASCII. `squeeze` deletes spaces and line ends; otherwise line ends become spaces. */
static void vp_impl_tool_wide(vp_impl_score_span span, vp_impl_score_text_out *out) {
    const char *at, *end = span.text + span.bytes;
    size_t bytes;
    for (at = span.text; at < end; at += bytes) {
        uint32_t code = vp_unicode_get(at, end, &bytes);
        vp_impl_score_text_code(out, code >= 0xFF01 && code <= 0xFF5E ? code - 0xFEE0 : code);
    }
}
static void vp_impl_tool_ends_rule(vp_impl_score_span span, vp_impl_score_text_out *out) {
    for (size_t i = 0; i < span.bytes; i++) vp_impl_score_text_add(out, span.text[i] == '\n' ? " " : span.text + i, 1);
}
static void vp_impl_tool_squeeze_rule(vp_impl_score_span span, vp_impl_score_text_out *out) {
    for (size_t i = 0; i < span.bytes; i++)
        if (span.text[i] != '\n' && span.text[i] != ' ') vp_impl_score_text_add(out, span.text + i, 1);
}
static vp_impl_score_span vp_impl_tool_ocr_text(vp_impl_score_pool *pool, const char *text, int is_formula,
                                                int is_wide) {
    vp_impl_score_span span = vp_impl_score_span_of(text);
    if (is_formula) return vp_impl_score_map(pool, vp_impl_score_trimmed(span), vp_impl_tool_squeeze_rule);
    span = vp_impl_score_map(pool, vp_impl_score_trimmed(vp_impl_score_lower(pool, span)), vp_impl_tool_ends_rule);
    return is_wide ? vp_impl_score_map(pool, span, vp_impl_tool_wide) : span;
}
static void vp_impl_tool_ocrbench(vp_impl_score_pool *pool, const vp_score_sample *sample, int is_lmms,
                                  vp_score_outcome *outcome) {
    const char *category = sample->category ? sample->category : "";
    int is_formula =
        !strcmp(category, "Handwritten Mathematical Expression Recognition") || !strcmp(category, "HME100k");
    vp_impl_score_span span = vp_impl_tool_ocr_text(pool, sample->prediction, is_formula, is_lmms);
    outcome->score = 0;
    for (size_t i = 0; i < sample->reference_count; i++) {
        const vp_impl_score_pool before = *pool;
        if (vp_impl_score_search(span, vp_impl_tool_ocr_text(pool, sample->references[i], is_formula, is_lmms), 0))
            outcome->score = 1;
        vp_impl_score_give_back(pool, &before);
    }
}
/* the first word that is a number from 0 to 20 or its name */
static void vp_impl_tool_tally(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    static const char *const names[] = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
                                        "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen",
                                        "seventeen", "eighteen", "nineteen", "twenty"};
    vp_impl_score_span span = vp_impl_score_lower_all(pool, sample->prediction);
    const char *at = span.text, *end = span.text + span.bytes, *start;
    size_t bytes, number;
    outcome->score = 0;
    while (at < end) {
        char digits[4];
        for (start = at; at < end && vp_unicode_is_word(vp_unicode_get(at, end, &bytes)); at += bytes) { }
        for (number = 0; number <= 20; number++) {
            digits[0] = (char)('0' + (number < 10 ? number : number / 10));
            digits[1] = (char)(number < 10 ? 0 : '0' + number % 10);
            digits[2] = 0;
            if (vp_impl_tool_is(vp_impl_score_span_from(start, at), names[number])
                || vp_impl_tool_is(vp_impl_score_span_from(start, at), digits)) {
                vp_impl_tool_parsed(pool, vp_impl_score_span_of(digits), outcome);
                outcome->score = vp_impl_tool_is(vp_impl_score_span_of(digits), vp_impl_tool_answer(sample));
                return;
            }
        }
        if (at < end && at == start) {
            vp_unicode_get(at, end, &bytes);
            at += bytes;
        }
    }
}

/* ---- MathVista */
static int vp_impl_tool_same_type(const char *type, const char *word) { return type && !strcmp(type, word); }
/* int(text): optional white space and sign, digits with single underscores between. Returns 1 and the digits in
 * `out`. */
static int vp_impl_tool_int(vp_impl_score_pool *pool, vp_impl_score_span span, vp_impl_score_span *out) {
    char *text = (char *)vp_impl_score_take(pool, span.bytes + 2, 1);
    size_t count = 0, bytes, kept;
    int last_digit = 0;
    span = vp_impl_score_trimmed(span);
    const char *at = span.text;
    const char *end = at + span.bytes;
    if (!text) return 0;
    if (at < end && (*at == '-' || *at == '+')) {
        if (*at == '-') text[count++] = '-';
        at++;
    }
    kept = count;
    for (; at < end; at += bytes) {
        uint32_t code = vp_unicode_get(at, end, &bytes);
        int digit = vp_unicode_digit(code);
        if (digit < 0 && !(code == '_' && last_digit)) return 0;
        last_digit = digit >= 0;
        if (digit > 0 || (digit == 0 && count > kept)) text[count++] = (char)('0' + digit);
    }
    if (!last_digit) return 0;
    if (count == kept) {
        text[0] = '0';
        count = 1;
    }
    *out = vp_impl_score_span_from(text, text + count);
    return 1;
}
/* The "..." of `The answer is "...".` in a line, from the first such phrase; bytes SIZE_MAX if there is none. */
static vp_impl_score_span vp_impl_tool_quick(vp_impl_score_span span) {
    static const char phrase[] = "The answer is \"", close[] = "\".";
    vp_impl_score_span rest = span, none = {"", SIZE_MAX};
    const char *at;
    while ((at = vp_impl_score_search(rest, vp_impl_score_span_of(phrase), 0)) != NULL) {
        const char *start = at + sizeof phrase - 1, *end = span.text + span.bytes;
        const char *line = (const char *)memchr(start, '\n', (size_t)(end - start));
        const char *stop = vp_impl_score_search(vp_impl_score_span_from(start, line ? line : end),
                                                vp_impl_score_span_of(close), 1);
        if (stop) return vp_impl_score_span_from(start, stop);
        rest = vp_impl_score_span_from(start, end);
    }
    return none;
}
/* normalize_extracted_answer for a choice: by a letter in brackets, a letter, or the nearest choice */
static vp_impl_score_span vp_impl_tool_nearest(vp_impl_score_pool *pool, const vp_score_sample *sample,
                                               vp_impl_score_span extracted) {
    size_t i, nearest = 0, least = SIZE_MAX;
    char letter = 0;
    extracted = vp_impl_score_trimmed(extracted);
    for (i = 0; i + 2 < extracted.bytes && !letter; i++) {
        char middle = extracted.text[i + 1];
        if (extracted.text[i] == '(' && extracted.text[i + 2] == ')'
            && ((middle >= 'A' && middle <= 'Z') || (middle >= 'a' && middle <= 'z')))
            letter = (char)(middle & ~32);
    }
    if (!letter && extracted.bytes == 1) letter = extracted.text[0];
    if (letter >= 'A' && (size_t)(letter - 'A') < sample->option_count)
        return vp_impl_score_span_of(sample->options[letter - 'A']);
    if (letter) extracted = vp_impl_score_span_from(&letter, &letter + 1);
    for (i = 0; i < sample->option_count; i++) {
        size_t distance = vp_impl_score_distance(pool, extracted, vp_impl_score_span_of(sample->options[i]));
        if (distance < least) {
            least = distance;
            nearest = i;
        }
    }
    return sample->option_count ? vp_impl_score_span_of(sample->options[nearest]) : extracted;
}
/* The text of a number as the scripts compare it; bytes SIZE_MAX: None. */
static vp_impl_score_span vp_impl_tool_number(vp_impl_score_pool *pool, const vp_score_sample *sample,
                                              vp_impl_score_span extracted) {
    vp_impl_score_span none = {"", SIZE_MAX};
    char text[32];
    double value = 0;
    size_t bytes;
    if (!vp_impl_score_float(pool, extracted, &value)) return none;
    if (vp_impl_tool_same_type(sample->answer_type, "integer")) {
        if (!(fabs(value) < HUGE_VAL)) return none;
        value = value < 0 ? ceil(value) : floor(value);
        return vp_impl_score_span_of(vp_impl_score_integer_text(pool, value, value < 0));
    }
    if (sample->precision == INT64_MIN) return none;
    if (!(fabs(value) < HUGE_VAL)) return vp_impl_score_span_of(value != value ? "nan" : value < 0 ? "-inf" : "inf");
    bytes = vp_number_format(vp_impl_score_round(value, sample->precision), text);
    return vp_impl_score_span_of(vp_impl_score_keep(pool, vp_impl_score_span_from(text, text + bytes)));
}
static void vp_impl_tool_vista(vp_impl_score_pool *pool, const vp_score_sample *sample, int is_lmms,
                               vp_score_outcome *outcome) {
    vp_impl_score_span span = vp_impl_score_span_of(sample->prediction), extracted = {"", 0}, none = {"", SIZE_MAX},
                       held;
    const int is_choice = vp_impl_tool_same_type(sample->question_type, "multi_choice");
    double value;
    int found = 0;
    for (size_t i = 0; is_choice && i < sample->option_count; i++) found |= vp_impl_tool_is(span, sample->options[i]);
    if (!found && vp_impl_tool_same_type(sample->answer_type, "integer")) found = vp_impl_tool_int(pool, span, &held);
    if (!found && vp_impl_tool_same_type(sample->answer_type, "float")) found = vp_impl_score_float(pool, span, &value);
    if (found) extracted = span;
    else if (!is_lmms && (held = vp_impl_tool_quick(span)).bytes != SIZE_MAX) extracted = held;
    if (is_choice) {
        held = vp_impl_score_trimmed(extracted);
        extracted = held.bytes || is_lmms ? vp_impl_tool_nearest(pool, sample, extracted) : none;
    } else if (vp_impl_tool_same_type(sample->answer_type, "integer"))
        extracted = vp_impl_tool_number(pool, sample, extracted);
    else if (vp_impl_tool_same_type(sample->answer_type, "float")) /* lmms-eval rounds to 1.0 places, which Python
                                                                    * rejects */
        extracted = is_lmms && sample->is_real_precision ? none : vp_impl_tool_number(pool, sample, extracted);
    else if (!vp_impl_tool_same_type(sample->answer_type, "list")) extracted = none;
    outcome->score = extracted.bytes != SIZE_MAX && vp_impl_tool_is(extracted, vp_impl_tool_answer(sample));
    outcome->is_unread = extracted.bytes == SIZE_MAX;
    if (extracted.bytes != SIZE_MAX) vp_impl_tool_parsed(pool, extracted, outcome);
}
/* VLMEvalKit's prefetch: its multiple-choice rule for a choice; a number must equal the answer and differ from 0. */
static void vp_impl_tool_vista_vk(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    vp_impl_score_span span = vp_impl_score_span_of(sample->prediction), answer, number;
    double value, wanted;
    char letter, text[32];
    outcome->score = 0;
    if (vp_impl_tool_same_type(sample->question_type, "multi_choice")) {
        letter = vp_impl_tool_infer(pool, sample, span);
        if (letter) vp_impl_tool_letter(pool, letter, outcome);
        outcome->is_unread = !letter;
        for (size_t i = 0; letter && i < sample->option_count; i++)
            if (letter == (char)('A' + i) && !strcmp(sample->options[i], vp_impl_tool_answer(sample)))
                outcome->score = 1;
        return;
    }
    answer = vp_impl_score_span_of(vp_impl_tool_answer(sample));
    if (vp_impl_tool_same_type(sample->answer_type, "integer")) {
        outcome->score = vp_impl_tool_int(pool, span, &number) && vp_impl_tool_int(pool, answer, &answer)
                         && vp_impl_score_same(number, answer) && !vp_impl_tool_is(number, "0");
        if (outcome->score == 1) vp_impl_tool_parsed(pool, number, outcome);
    } else if (vp_impl_tool_same_type(sample->answer_type, "float")) {
        outcome->score = vp_impl_score_float(pool, span, &value) && vp_impl_score_float(pool, answer, &wanted)
                         && value == wanted && value != 0;
        if (outcome->score == 1 && fabs(value) < HUGE_VAL)
            vp_impl_tool_parsed(pool, vp_impl_score_span_from(text, text + vp_number_format(value, text)), outcome);
    }
    outcome->is_unread = outcome->score != 1;
}

/* ---- relaxed accuracy of the stripped answer */
static vp_result vp_impl_score_relaxed_vk(vp_impl_score_pool *pool, const vp_score_sample *sample,
                                          vp_score_outcome *outcome) {
    const char *stripped = vp_impl_score_keep(pool, vp_impl_score_trimmed(vp_impl_score_span_of(sample->prediction)));
    return vp_score_relaxed(stripped, sample->references, sample->reference_count, pool->next, pool->left,
                            &outcome->score);
}

#endif /* implementation */
