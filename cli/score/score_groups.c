/* score_groups.c: scores whole sets whose rows belong together.
 * Sources: VLMEvalKit e8e78f05 (dataset/utils/yorn.py), lmms-eval 75571cfe (tasks/mme, tasks/pope), POPE 08d957b9
 * (evaluate.py). */
#include "score/score_groups.h"

#include "base/console.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CATEGORIES_MAX = 64, RESAMPLES = 1000, GROUP_SEED = 42 };

/* A row with each tool's reading of its answer: 1 yes, 0 no, -1 neither. */
struct judged { int category, group, truth, vlmevalkit, mme_lmms, pope_lmms, official; };
struct judged_set {
    struct text_list categories;
    struct text_list groups; /* names of pictures; row numbers if each row is a group */
    struct judged *rows; size_t count, capacity;
};
static void set_free(struct judged_set *set) {
    text_list_free(&set->categories);
    text_list_free(&set->groups);
    free(set->rows);
    memset(set, 0, sizeof *set);
}
static int index_in(struct text_list *list, const char *name) {
    for (size_t i = list->count; i > 0; i--) if (!strcmp(list->items[i - 1], name)) return (int)i - 1;
    text_list_copy(list, name);
    return (int)list->count - 1;
}
static int is_yes(const char *text) {
    return (text[0] | 32) == 'y' && (text[1] | 32) == 'e' && (text[2] | 32) == 's' && !text[3];
}
static int is_no(const char *text) { return (text[0] | 32) == 'n' && (text[1] | 32) == 'o' && !text[2]; }
static int reading(struct scoring *scoring, vp_score_metric metric) {
    vp_score_outcome outcome;
    if (scoring_run(scoring, metric, VP_SCORE_CLEAN_NONE, &outcome) != VP_OK || !outcome.parsed) return -1;
    return is_yes(outcome.parsed) ? 1 : is_no(outcome.parsed) ? 0 : -1;
}
struct judged_set *judged_new(void) { return zeroed(1, sizeof(struct judged_set)); }
void judged_free(struct judged_set *set) {
    if (set) set_free(set);
    free(set);
}
const char *judged_add(struct judged_set *set, struct scoring *scoring, const vp_json *json, uint32_t node,
                       char *prediction) {
    struct judged *row;
    const char *trouble, *answer;
    char *category, *group;
    scoring_clear(scoring);
    scoring->sample.prediction = scoring_own(scoring, prediction);
    if (!prediction) return "a row has no prediction";
    if ((trouble = scoring_read(scoring, VP_SCORE_YES_NO_VK, json, node)) != NULL) return trouble;
    answer = scoring->sample.reference_count ? scoring->sample.references[0] : "";
    if (!is_yes(answer) && !is_no(answer)) return "the answer of a row is not yes or no";
    if (set->count == set->capacity) {
        set->capacity = set->capacity * 2 + 256;
        set->rows = resize(set->rows, set->capacity, sizeof *set->rows);
    }
    row = &set->rows[set->count];
    row->truth = is_yes(answer);
    row->vlmevalkit = reading(scoring, VP_SCORE_YES_NO_VK);
    row->mme_lmms = reading(scoring, VP_SCORE_MME_LMMS);
    row->pope_lmms = reading(scoring, VP_SCORE_POPE_LMMS);
    row->official = reading(scoring, VP_SCORE_POPE_OFFICIAL);
    category = node_text(json, vp_json_get(json, node, "category"));
    row->category = index_in(&set->categories, category ? category : "");
    group = node_text(json, vp_json_get(json, node, "question_id"));
    if (!group) group = node_text(json, vp_json_get(json, node, "image"));
    if (!group) group = node_text(json, vp_json_get(json, node, "image_path"));
    if (!group) group = node_text(json, vp_json_at(json, vp_json_get(json, node, "images_sha256"), 0));
    row->group = group ? index_in(&set->groups, group) : -1;
    FREE_ALL(category, group);
    if (set->categories.count > CATEGORIES_MAX) return "there are more than 64 categories";
    set->count++;
    return NULL;
}

/* Adds a row of a file of sets. */
static const char *add_row(struct judged_set *set, struct scoring *scoring, const vp_json *json, uint32_t node) {
    if (!node_is(json, node, VP_JSON_OBJECT)) return "a row must be an object";
    return judged_add(set, scoring, json, node, node_text(json, vp_json_get(json, node, "prediction")));
}

/* ---- named numbers */
enum { NUMBERS_MAX = 5 * (CATEGORIES_MAX + 4) };
struct number { const char *section, *group, *name; double value; }; /* group is NULL directly in the section */
struct numbers { struct number items[NUMBERS_MAX]; size_t count; };
static void add_number(struct numbers *out, const char *section, const char *group, const char *name, double value) {
    struct number *number = &out->items[out->count < NUMBERS_MAX ? out->count++ : NUMBERS_MAX - 1];
    number->section = section;
    number->group = group;
    number->name = name;
    number->value = value;
}
static double share(double part, double whole) { return whole ? part / whole : 0; }

/* ---- MME */
static const char *const PERCEPTION[] = {"OCR",      "artwork",  "celebrity", "color",   "count",
                                         "existence", "landmark", "position",  "posters", "scene"};
static const char *const COGNITION[] = {"code_reasoning", "commonsense_reasoning", "numerical_calculation",
                                        "text_translation"};
struct category_sums {
    double right, rows, pairs, pictures, lmms;
    int is_odd;
}; /* is_odd: 1 if a picture does not have two rows */

/* Adds the rows of one picture to the sums of its category. Rows are in file order. */
static void add_picture(struct category_sums *sums, const struct judged *rows, size_t count) {
    double vlmevalkit = 0, lmms = 0;
    for (size_t i = 0; i < count; i++) {
        vlmevalkit += rows[i].vlmevalkit == rows[i].truth;
        lmms += rows[i].mme_lmms == rows[i].truth;
    }
    sums->right += vlmevalkit;
    sums->rows += (double)count;
    sums->pictures++;
    if (count >= 2) sums->pairs += rows[0].vlmevalkit == rows[0].truth && rows[1].vlmevalkit == rows[1].truth;
    if (count != 2) sums->is_odd = 1;
    sums->lmms += lmms / (double)count * 100 + (lmms == 2) * 100.0;
}
static double sum_of(const struct judged_set *set, const struct category_sums *sums, const char *const *names,
                     size_t count, int is_lmms) {
    double total = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < set->categories.count; k++)
            if (!strcmp(set->categories.items[k], names[i]) && sums[k].pictures) {
                if (is_lmms && sums[k].is_odd) return (double)NAN; /* lmms-eval fails in this case */
                total += is_lmms ? sums[k].lmms / sums[k].pictures
                                 : sums[k].right / sums[k].rows * 100 + sums[k].pairs / sums[k].pictures * 100;
            }
    return total;
}
static void mme_numbers(const struct judged_set *set, const struct judged *rows, size_t count, struct numbers *out) {
    struct category_sums sums[CATEGORIES_MAX] = {0};
    for (size_t i = 0, end; i < count; i = end) { /* rows of one picture are adjacent */
        for (end = i + 1; end < count && rows[end].group == rows[i].group && rows[end].category == rows[i].category;
             end++) {}
        add_picture(&sums[rows[i].category], rows + i, end - i);
    }
    for (int is_lmms = 0; is_lmms < 2; is_lmms++) {
        const char *tool = is_lmms ? "lmms_eval" : "vlmevalkit";
        const double seen = sum_of(set, sums, PERCEPTION, 10, is_lmms),
                     thought = sum_of(set, sums, COGNITION, 4, is_lmms);
        add_number(out, tool, NULL, "perception", seen);
        add_number(out, tool, NULL, is_lmms ? "cognition" : "reasoning", thought);
        /* no tool prints this, so it has its own section */
        add_number(out, is_lmms ? "lmms_eval total" : "vlmevalkit total", NULL, "total", seen + thought);
    }
    for (size_t k = 0; k < set->categories.count; k++) {
        const char *name = set->categories.items[k];
        add_number(out, "vlmevalkit", NULL, name, sum_of(set, sums, &name, 1, 0));
    }
}

/* ---- POPE */
struct counts { double tp, fp, tn, fn, right, rows; };
static void vlmevalkit_pope(struct numbers *out, const char *group, const struct counts *counts) {
    double precision = share(counts->tp, counts->tp + counts->fp), recall = share(counts->tp, counts->tp + counts->fn);
    add_number(out, "vlmevalkit", group, "Overall", share(2 * precision * recall, precision + recall) * 100);
    add_number(out, "vlmevalkit", group, "acc", share(counts->right, counts->rows) * 100);
    add_number(out, "vlmevalkit", group, "precision", precision * 100);
    add_number(out, "vlmevalkit", group, "recall", recall * 100);
}
static void count_row(struct counts *counts, int truth, int answer) {
    counts->tp += truth && answer == 1;
    counts->fp += !truth && answer == 1;
    counts->fn += truth && answer != 1;
    counts->tn += !truth && answer != 1;
    counts->right += truth == answer;
    counts->rows++;
}
/* Returns 1 if `name` is one of the comma-separated names in `list`. */
static int names_category(const char *list, const char *name) {
    size_t bytes = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',' && at != list;
        if (!strncmp(at, name, bytes) && (!at[bytes] || at[bytes] == ',')) return 1;
    }
    return 0;
}
/* The single categories of a set: "a,b" is two. */
static void single_categories(const struct judged_set *set, struct text_list *out) {
    for (size_t i = 0; i < set->categories.count; i++) {
        const char *at = set->categories.items[i];
        while (*at) {
            size_t bytes = strcspn(at, ",");
            char *name = copy_text(at, bytes);
            if (bytes && !text_list_has(out, name)) text_list_copy(out, name);
            free(name);
            at += bytes + (at[bytes] == ',');
        }
    }
}
static void official_pope(struct numbers *out, const struct counts *counts) {
    const double nothing = (double)NAN; /* the script fails with a division by 0 */
    double precision = counts->tp + counts->fp > 0 ? counts->tp / (counts->tp + counts->fp) : nothing;
    double recall = counts->tp + counts->fn > 0 ? counts->tp / (counts->tp + counts->fn) : nothing;
    add_number(out, "official", NULL, "TP", counts->tp);
    add_number(out, "official", NULL, "FP", counts->fp);
    add_number(out, "official", NULL, "TN", counts->tn);
    add_number(out, "official", NULL, "FN", counts->fn);
    add_number(out, "official", NULL, "accuracy", (counts->tp + counts->tn) / counts->rows);
    add_number(out, "official", NULL, "precision", precision);
    add_number(out, "official", NULL, "recall", recall);
    add_number(out, "official", NULL, "f1",
               precision + recall > 0 ? 2 * precision * recall / (precision + recall) : nothing);
    add_number(out, "official", NULL, "yes_ratio", (counts->tp + counts->fp) / counts->rows);
}
static void pope_numbers(const struct judged_set *set, const struct text_list *singles, const struct judged *rows,
                         size_t count, struct numbers *out) {
    struct counts official = {0}, all = {0}, one, lmms = {0};
    double missed = 0, yes = 0, precision, recall;
    for (size_t i = 0; i < count; i++) {
        const char *categories = set->categories.items[rows[i].category];
        count_row(&official, rows[i].truth, rows[i].official);
        count_row(&lmms, rows[i].truth, rows[i].pope_lmms);
        missed += rows[i].truth && rows[i].pope_lmms == 0; /* only "no" is a miss in its recall */
        yes += rows[i].truth;                              /* its yes_ratio counts the references */
        for (const char *at = categories; at; at = strchr(at, ',')) { /* a row with two categories counts twice */
            at += *at == ',' && at != categories;
            count_row(&all, rows[i].truth, rows[i].vlmevalkit);
        }
    }
    official_pope(out, &official);
    vlmevalkit_pope(out, "Overall", &all);
    for (size_t k = 0; k < singles->count; k++) {
        memset(&one, 0, sizeof one);
        for (size_t i = 0; i < count; i++)
            if (names_category(set->categories.items[rows[i].category], singles->items[k]))
                count_row(&one, rows[i].truth, rows[i].vlmevalkit);
        vlmevalkit_pope(out, singles->items[k], &one);
    }
    precision = share(lmms.tp, lmms.tp + lmms.fp);
    recall = share(lmms.tp, lmms.tp + missed);
    add_number(out, "lmms_eval", NULL, "accuracy", share(lmms.right, lmms.rows));
    add_number(out, "lmms_eval", NULL, "precision", precision);
    add_number(out, "lmms_eval", NULL, "recall", recall);
    add_number(out, "lmms_eval", NULL, "f1", share(2 * precision * recall, precision + recall));
    add_number(out, "lmms_eval", NULL, "yes_ratio", share(yes, (double)count));
}

/* ---- sets */
struct ordered { struct judged row; size_t place; };
static int by_picture(const void *left_item, const void *right_item) {
    const struct ordered *left = (const struct ordered *)left_item, *right = (const struct ordered *)right_item;
    if (left->row.category != right->row.category) return left->row.category < right->row.category ? -1 : 1;
    if (left->row.group != right->row.group) return left->row.group < right->row.group ? -1 : 1;
    return (left->place > right->place) - (left->place < right->place);
}
/* Makes rows of one picture adjacent. */
static void sort_rows(struct judged_set *set) {
    struct ordered *items = resize(NULL, set->count + 1, sizeof *items);
    for (size_t i = 0; i < set->count; i++) {
        items[i].row = set->rows[i];
        items[i].place = i;
    }
    qsort(items, set->count, sizeof *items, by_picture);
    for (size_t i = 0; i < set->count; i++) set->rows[i] = items[i].row;
    free(items);
}
static void numbers_of(int metric, const struct judged_set *set, const struct text_list *singles,
                       const struct judged *rows, size_t count, struct numbers *out) {
    out->count = 0;
    if (metric == RULE_MME_SETS) mme_numbers(set, rows, count, out);
    else pope_numbers(set, singles, rows, count, out);
}
/* The start of each group in set->rows, and the first and the end group of its stratum. A stratum is a category for MME
 * and everything for POPE. */
struct group_at { size_t start, first, last; };
static struct group_at *find_groups(int metric, const struct judged_set *set, size_t *count) {
    struct group_at *groups = zeroed(set->count + 1, sizeof *groups);
    const struct judged *rows = set->rows;
    size_t first = 0, found = 0;
    for (size_t i = 0; i < set->count; i++) {
        int is_next = i && metric == RULE_MME_SETS && rows[i].category != rows[i - 1].category;
        if (i && !is_next && metric == RULE_MME_SETS && rows[i].group == rows[i - 1].group) continue;
        for (; is_next && first < found; first++) groups[first].last = found;
        groups[found].first = first;
        groups[found++].start = i;
    }
    for (; first < found; first++) groups[first].last = found;
    groups[found].start = set->count;
    *count = found;
    return groups;
}
/* Draws groups with replacement within their stratum. Stores the numbers of each draw: draws [RESAMPLES][numbers]. */
static void resample(int metric, const struct judged_set *set, const struct text_list *singles, size_t numbers,
                     double *draws) {
    size_t count, filled, capacity = set->count * 2 + 64;
    struct group_at *groups = find_groups(metric, set, &count);
    struct judged *rows = resize(NULL, capacity, sizeof *rows);
    struct numbers *out = resize(NULL, 1, sizeof *out);
    vp_random random;
    vp_random_seed(&random, GROUP_SEED);
    for (size_t draw = 0; draw < RESAMPLES; draw++) {
        filled = 0;
        for (size_t i = 0; i < count; i++) {
            size_t width = groups[i].last - groups[i].first;
            size_t pick = groups[i].first + (size_t)(vp_random_double(&random) * (double)width);
            size_t more = groups[pick + 1].start - groups[pick].start;
            if (filled + more > capacity) {
                capacity = (filled + more) * 2;
                rows = resize(rows, capacity, sizeof *rows);
            }
            for (size_t k = 0; k < more; k++) {
                rows[filled] = set->rows[groups[pick].start + k];
                rows[filled++].group = (int)i; /* a picture drawn twice counts as two pictures */
            }
        }
        numbers_of(metric, set, singles, rows, filled, out);
        for (size_t k = 0; k < numbers; k++) draws[draw * numbers + k] = out->items[k].value;
    }
    FREE_ALL(groups, rows, out);
}
/* The interval of a number over the draws that have it. Returns 1 if all have it. */
static int drawn_interval(const double *draws, const struct numbers *numbers, size_t which, double *low, double *high) {
    double *column = resize(NULL, RESAMPLES, sizeof *column);
    size_t finite = 0;
    for (size_t k = 0; k < RESAMPLES; k++)
        if (isfinite(draws[k * numbers->count + which])) column[finite++] = draws[k * numbers->count + which];
    vp_sort_double(column, finite);
    *low = finite ? vp_statistics_percentile(column, finite, 2.5) : 0;
    *high = finite ? vp_statistics_percentile(column, finite, 97.5) : 0;
    free(column);
    return finite == RESAMPLES;
}
static void put_section(vp_json_writer *writer, const struct numbers *numbers, const char *section,
                        const double *draws) {
    const char *group = NULL;
    for (size_t i = 0; i < numbers->count; i++) {
        const struct number *number = &numbers->items[i];
        double low, high;
        if (strcmp(number->section, section)) continue;
        if (number->group && (!group || strcmp(group, number->group))) {
            if (group) vp_json_end_object(writer);
            group = number->group;
            PUT(writer, KEY_OBJECT(group));
        }
        if (!draws) put_double(writer, number->name, number->value);
        if (draws) {
            const int is_known = drawn_interval(draws, numbers, i, &low, &high);
            put_interval(writer, number->name, is_known, low, high);
        }
    }
    if (group) vp_json_end_object(writer);
}
/* The numbers of a set and of its draws: double [RESAMPLES][numbers->count], malloc'ed. Sorts the rows. */
static double *numbers_and_draws(struct judged_set *set, int metric, struct text_list *singles,
                                 struct numbers *numbers) {
    double *draws;
    if (metric == RULE_MME_SETS) sort_rows(set);
    single_categories(set, singles);
    numbers_of(metric, set, singles, set->rows, set->count, numbers);
    draws = resize(NULL, RESAMPLES * numbers->count, sizeof *draws);
    resample(metric, set, singles, numbers->count, draws);
    return draws;
}
void judged_totals(struct judged_set *set, int metric, const char *tool, total_visitor *visit, void *user) {
    static const char totals[] =
        " perception reasoning cognition total accuracy precision recall f1 yes_ratio Overall acc ";
    struct numbers *numbers = resize(NULL, 1, sizeof *numbers);
    struct text_list singles = {NULL, 0};
    double *draws = numbers_and_draws(set, metric, &singles, numbers);
    for (size_t i = 0; i < numbers->count; i++) {
        const struct number *number = &numbers->items[i];
        /* the share of yes in the answers: only the official one */
        const char *section = !strcmp(number->name, "yes_ratio") ? "official" : tool;
        char name[64];
        double low, high;
        snprintf(name, sizeof name, " %s ", number->name);
        if ((number->group && strcmp(number->group, "Overall") != 0) || !strstr(totals, name)) continue;
        if (strncmp(number->section, section, strlen(section)) != 0) continue;
        if (!drawn_interval(draws, numbers, i, &low, &high)) low = high = (double)NAN;
        visit(user, section, !strcmp(number->name, "Overall") ? "f1" : number->name, number->value, low, high);
    }
    text_list_free(&singles);
    FREE_ALL(draws, numbers);
}
/* Prints the line of a set. Returns 0 or an exit code. */
static int print_set(struct score_job *job, struct judged_set *set, const char *name, int metric) {
    static const char *const sections[] = {"official", "vlmevalkit", "lmms_eval"};
    struct numbers *numbers = resize(NULL, 1, sizeof *numbers);
    struct text_list singles = {NULL, 0};
    struct text_buffer line = {NULL, 0, 0};
    vp_json_writer writer;
    double *draws = numbers_and_draws(set, metric, &singles, numbers);
    vp_json_writer_init_sink(&writer, text_sink, &line, 0);
    PUT(&writer, KEY_OBJECT(NULL), KEY("name", name), KEY("rows", (int64_t)set->count));
    for (int is_interval = 0; is_interval < 2; is_interval++) {
        if (is_interval) {
            PUT(&writer, KEY_OBJECT("intervals"));
        }
        for (size_t i = metric == RULE_MME_SETS; i < 3; i++) {
            PUT(&writer, KEY_OBJECT(sections[i]));
            put_section(&writer, numbers, sections[i], is_interval ? draws : NULL);
            vp_json_end_object(&writer);
        }
        if (is_interval) vp_json_end_object(&writer);
    }
    vp_json_end_object(&writer);
    int code = score_put_line(&writer, &line, job->source);
    text_list_free(&singles);
    FREE_ALL(line.data, draws, numbers);
    return code;
}
static int score_set(struct score_job *job, struct scoring *scoring, const vp_json *json, uint32_t node, int metric) {
    struct judged_set set = {0};
    uint32_t rows = vp_json_get(json, node, "rows");
    char *name = node_text(json, vp_json_get(json, node, "name"));
    const char *trouble = NULL;
    int64_t number = 0;
    for (uint32_t i = rows + 1; i < json->nodes[rows].end && !trouble; i = json->nodes[i].end, number++)
        trouble = add_row(&set, scoring, json, i);
    int code = trouble      ? complain(EXIT_INPUT, "%s: set %s, row %lld: %s", job->source, name ? name : "-",
                                       (long long)number - 1, trouble)
               : !set.count ? complain(EXIT_INPUT, "%s: set %s has no rows", job->source, name ? name : "-")
                            : print_set(job, &set, name, metric);
    set_free(&set);
    free(name);
    return code;
}
int score_sets(struct score_job *job, int metric) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    struct scoring scoring = {0};
    struct judged_set lines = {0};
    uint32_t sets = VP_JSON_NONE;
    int code = 0;
    if (parse_json(&parsed, job->text, job->text_bytes, NULL) == VP_OK && node_is(&parsed.json, 0, VP_JSON_OBJECT))
        sets = vp_json_get(&parsed.json, 0, "sets");
    if (node_is(&parsed.json, sets, VP_JSON_ARRAY)) score_list(job, &parsed.json, sets);
    for (size_t i = 0; i < job->line_count && !code; i++) {
        vp_error error = {VP_OK, -1, "", ""};
        const char *trouble;
        vp_result result = parse_json(&parsed, job->lines[i], job->line_bytes[i], &error);
        if (result != VP_OK) code = complain(EXIT_INPUT, "%s: line %zu: %s", job->source, i + 1, error.text);
        else if (node_is(&parsed.json, vp_json_get(&parsed.json, 0, "rows"), VP_JSON_ARRAY))
            code = score_set(job, &scoring, &parsed.json, 0, metric);
        else if ((trouble = add_row(&lines, &scoring, &parsed.json, 0)) != NULL)
            code = complain(EXIT_INPUT, "%s: line %zu: %s", job->source, i + 1, trouble);
    }
    if (!code && lines.count) code = print_set(job, &lines, job->source, metric);
    set_free(&lines);
    scoring_free(&scoring);
    free(parsed.nodes);
    return code;
}
