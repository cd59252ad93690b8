/* command_data.c: shows the contents of a data file: its format, and each sample as the evaluation tools understand it.
 * Files in any known format are read. The output is a summary with the first samples, one JSON object per sample, or
 * our own JSONL with its pictures. Needs no model. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "formats/table.h"
#include "model/prompt.h"
#include "model/webp_gif.h"
#include "score/scoring.h"
#include "tile/family.h"
#include "vlmprof.h"
#include "vlmprof_file.h"
#include "vlmprof_prompt.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec DATA_OPTIONS[] = {
    OPTION_GROUP("input"),
    OPTION_DATA_FORMAT,
    {"dataset_name", TEXT, "NAME", NULL, 0, 0, NULL,
     "the evaluation set (mmstar, docvqa_val, ..; help tasks lists them), if the file does not name it"},
    OPTION_PROMPT_ORIGIN,
    {"image_dir", TEXT, "DIR", NULL, 0, 0, NULL, "folder of pictures that are named by relative paths"},
    {"annotations", TEXT, "FILE", NULL, 0, 0, NULL, "the annotations of a VQA v2 question file"},
    {"family", TEXT, "NAME", NULL, 0, 0, NULL,
     "count the tokens of each image by the rule of a model family (vlmprof tile --list_families)"},
    OPTION_GROUP("output"),
    {"samples", COUNT, "N", "3", 0, INT32_MAX, NULL, "number of samples in the summary"},
    {"output", TEXT, "FILE", NULL, 0, 0, NULL, "write the samples as vlmprof JSONL"},
    {"images", TEXT, "DIR", NULL, 0, 0, NULL, "with --output: write pictures embedded in the data to DIR",
     .needs = "output"},
    {"json", FLAG, NULL, NULL, 0, 0, NULL, "one JSON object per sample on stdout, with the hash of each picture"},
    {"check", FLAG, NULL, NULL, 0, 0, NULL, "decode every picture, to find damage behind its header"},
    OPTIONS_OF_ALL,
};

/* The results for all files. */
struct data_job {
    const struct options *options;
    vp_output output;
    int has_output; /* 1: --output is open */
    vp_family *family; /* from --family; NULL without it */
    size_t usable, bad;
};
enum { TROUBLES_SHOWN = 5 };
/* The results for one file. */
struct file_tally {
    size_t usable, bad, dropped, pictures, answered, few_answers, several, by_format[6];
    int32_t least_px, most_px; /* the shortest and the longest side */
    uint64_t *ids; size_t id_count, id_capacity; /* hashes of the usable samples' ids */
    size_t no_question, no_answer, blank_answer, no_option; /* samples with an empty question, .. */
    size_t without;            /* usable samples without a picture */
    char first_without[40];    /* where the first of them is */
    size_t with_options;       /* samples whose options are still to be added to the prompt */
    vp_score_metric own_metric; /* metric of the first sample, by its options */
    const char *metric;        /* name of the first example's metric; "several" if others differ */
    struct text_list troubles; /* the first TROUBLES_SHOWN at most */
    char refused[REASON_BYTES + 80]; /* the first row of our own format that stops a sweep; empty if none */
    struct text_list keys;     /* columns of the first row */
    char set_name[64];         /* its "dataset" */
    char origin[16];           /* its "prompt_origin", if that is a tool */
    int32_t new_tokens;        /* its "max_new_tokens", with a tool's prompt; 0 if not set */
    int64_t tokens, most_tokens; /* token counts by --family's rule: over all images, and the most in one sample */
};
static const char *const PICTURE_FORMATS[6] = {"PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"};

static int put_line(struct text_buffer *line, vp_json_writer *writer, const char *name) {
    vp_result result = vp_json_finish(writer);
    if (result != VP_OK)
        return complain(EXIT_WORK, "%s: a sample cannot be written as JSON: %s", name, vp_result_text(result));
    text_add(line, "\n", 1);
    return 0;
}
/* Token count of a picture by --family's rule; -1 if unknown. */
static int64_t picture_tokens(const struct data_job *job, const struct picture *picture) {
    vp_vision_count count;
    return job->family
                   && vp_family_count(job->family, picture->width_px, picture->height_px, &count, NULL) == VP_OK
               ? count.total_tokens
               : -1;
}
static int print_sample(const struct data_job *job, const struct table *table, const struct row *row, size_t index,
                        const struct example *example, struct text_buffer *line) {
    vp_json_writer writer;
    int code;
    line->bytes = 0;
    vp_json_writer_init_sink(&writer, text_sink, line, 0);
    PUT(&writer, KEY_OBJECT(NULL), KEY("file", table->name), KEY("row", (int64_t)index));
    if ((table->parquet || table->arrow) && !table->task && !example->reason[0]) {
        put_columns(&writer, row);
        put_text(&writer, "metric", example->metric);
    } else example_put(&writer, example);
    if (job->family && !example->reason[0]) {
        PUT(&writer, KEY_ARRAY("image_tokens_by_rule"));
        for (size_t i = 0; i < example->picture_count; i++)
            PUT(&writer, KEY_KNOWN(NULL, picture_tokens(job, &example->pictures[i]) >= 0,
                                   picture_tokens(job, &example->pictures[i])));
        PUT(&writer, END_ARRAY);
    }
    vp_json_end_object(&writer);
    if ((code = put_line(line, &writer, table->name)) != 0) return code;
    return fwrite(line->data, 1, line->bytes, stdout) == line->bytes ? 0 : output_failed();
}

/* ---- --output */
/* Writes a picture that is embedded in the data to --images. Returns its path, malloc'ed, or NULL after a message. */
static char *save_picture(const struct data_job *job, const struct table *table, const struct row *row, size_t index,
                          const struct example *example, size_t which) {
    const struct picture *picture = &example->pictures[which];
    const char *folder = text_of(job->options, "images");
    char name[320], ending[8] = "";
    char *path;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    for (size_t i = 0; picture->format[i] && i + 1 < sizeof ending; i++) {
        ending[i] = (char)tolower((unsigned char)picture->format[i]);
        ending[i + 1] = 0;
    }
    snprintf(name, sizeof name, "%.200s_%zu_%zu.%s", table->stem, index, which,
             strcmp(ending, "jpeg") ? ending : "jpg");
    path = join_path(folder, name);
    result = vp_file_write(path, row->blobs[picture->blob].data, picture->bytes, &error);
    if (result == VP_OK) return path;
    complain_result(EXIT_OUTPUT, path, result, &error);
    free(path);
    return NULL;
}
/* A picture's path for a reader of the written file: relative if the picture is below that file's folder, otherwise
 * absolute. Frees the given path and returns a malloc'ed one. */
static char *path_from_output(const struct data_job *job, char *path) {
    char *folder = copy_text(job->output.path, strlen(job->output.path)), *slash = strrchr(folder, '/');
    char *base, *picture = realpath(path, NULL);
    if (slash) slash[1] = 0;
    base = realpath(slash ? folder : ".", NULL);
    free(folder);
    size_t bytes = base ? strlen(base) : 0;
    if (picture) {
        free(path);
        path = base && !strncmp(picture, base, bytes) && picture[bytes] == '/'
                   ? copy_text(picture + bytes + 1, strlen(picture + bytes + 1))
                   : copy_text(picture, strlen(picture));
    }
    FREE_ALL(picture, base);
    return path;
}
/* The members of a line of our own, except the names of its images. */
static void put_own_members(vp_json_writer *writer, const vp_json *json) {
    for (uint32_t key = 1; key < json->nodes[0].end; key = json->nodes[key + 1].end) {
        char *name = node_text(json, key);
        if (name && strcmp(name, "image") && strcmp(name, "images")) {
            vp_json_key(writer, name);
            json_node(writer, json, key + 1);
        }
        free(name);
    }
}
/* Writes a sample as a line of our own JSONL. Returns 0 or an exit code. */
static int save_sample(struct data_job *job, const struct table *table, const struct row *row, size_t index,
                       const struct example *example, struct text_buffer *line) {
    vp_json_writer writer;
    vp_error error = {VP_OK, -1, "", ""};
    struct text_list paths = {NULL, 0};
    vp_result result;
    int code = 0;
    for (size_t i = 0; i < example->picture_count && !code; i++) {
        char *path = example->pictures[i].path ? copy_text(example->pictures[i].file, strlen(example->pictures[i].file))
                     : is_given(job->options, "images") ? save_picture(job, table, row, index, example, i)
                                                        : NULL;
        if (path) text_list_take(&paths, path_from_output(job, path));
        else code = is_given(job->options, "images")
                        ? EXIT_OUTPUT
                        : complain(EXIT_USAGE, "%s has embedded pictures: give --images DIR to write them "
                                               "to", table->name);
    }
    line->bytes = 0;
    vp_json_writer_init_sink(&writer, text_sink, line, 0);
    vp_json_begin_object(&writer);
    if (table->format == DATA_VLMPROF && table->origin == ORIGIN_NONE) put_own_members(&writer, &row->parsed.json);
    else {
        example_put_id(&writer, example);
        table_put_record(&writer, table, example);
        if (table_new_tokens(table)) put_int(&writer, "max_new_tokens", table_new_tokens(table));
    }
    if (paths.count == 1) put_text(&writer, "image", paths.items[0]);
    else if (paths.count) put_list(&writer, "images", &paths);
    vp_json_end_object(&writer);
    if (!code) code = put_line(line, &writer, table->name);
    if (!code && (result = vp_output_write(&job->output, line->data, line->bytes, &error)) != VP_OK)
        code = complain_result(EXIT_OUTPUT, text_of(job->options, "output"), result, &error);
    text_list_free(&paths);
    return code;
}

/* ---- the summary */
/* Returns 1 for lines of our own format. Other commands read them one by one, so an unusable one ends a sweep. */
static int is_own_lines(const struct table *table) {
    return table->format == DATA_VLMPROF && table->json.shape == SHAPE_LINES && table->origin == ORIGIN_NONE;
}
/* The set of which a sweep takes the defaults if no tool has asked: of --dataset_name, the file's name, or "dataset" of
 * the first row. NULL: none of the known ones. */
static const vp_prompt_dataset *known_set(const struct table *table, const char *set_name) {
    const vp_prompt_dataset *set = vp_prompt_dataset_find(table->variant);
    if (!set && table->task) set = vp_prompt_dataset_find(table->task->name);
    return set || !set_name ? set : vp_prompt_dataset_find(set_name);
}
struct row_place { char text[40]; };
/* The position of a row, counted from 1: the line number in our own format, as a sweep counts it, otherwise the row
 * number. */
static struct row_place place_of(struct table *table, size_t index) {
    struct row_place place;
    if (is_own_lines(table)) snprintf(place.text, sizeof place.text, "line %zu", json_rows_line(&table->json, index));
    else snprintf(place.text, sizeof place.text, "row %zu", index + 1);
    return place;
}
/* 1: a trouble that is shown has the same reason. */
static int has_trouble(const struct file_tally *tally, const char *reason) {
    for (size_t i = 0; i < tally->troubles.count; i++)
        if (!strcmp(strstr(tally->troubles.items[i], ": ") + 2, reason)) return 1;
    return 0;
}
/* Counts what a sample lacks, and its id. */
static void see_gaps(struct file_tally *tally, const struct example *example) {
    size_t blank = 0, options = 0;
    while (options < OPTIONS_MAX && example->options[options]) options++;
    for (size_t i = 0; i < example->answers.count; i++) blank += !example->answers.items[i][0];
    tally->no_question += example->question && !example->question[strspn(example->question, " \t\n")];
    tally->no_answer += !example->answer && !example->answers.count;
    tally->blank_answer += example->answers.count ? blank == example->answers.count
                                                  : example->answer && !example->answer[0];
    tally->no_option += options > 1 && example->answer && example->answer[0] >= 'A' && example->answer[0] <= 'Z'
                        && !example->answer[1] && (size_t)(example->answer[0] - 'A') >= options;
    if (tally->id_count == tally->id_capacity) {
        tally->id_capacity = tally->id_capacity * 2 + 1024;
        tally->ids = resize(tally->ids, tally->id_capacity, sizeof *tally->ids);
    }
    tally->ids[tally->id_count++] = hash_bytes(HASH_START, example->id.data, example->id.bytes);
}
static void count_sample(const struct data_job *job, struct table *table, struct file_tally *tally,
                         const struct example *example, size_t index) {
    int64_t tokens = 0;
    if (example->reason[0]) {
        tally->bad++;
        if (!has_trouble(tally, example->reason) && tally->troubles.count < TROUBLES_SHOWN)
            text_list_add(&tally->troubles, "%s: %s", place_of(table, index).text, example->reason);
        return;
    }
    for (int i = 0; i < OPTIONS_MAX && table->origin == ORIGIN_NONE && !tally->origin[0]; i++)
        if (example->options[i] && ++tally->with_options) break;
    if (!tally->usable++) tally->metric = example->metric;
    else if (!tally->metric) tally->metric = example->metric; /* a row without an answer has none */
    else if (example->metric && strcmp(example->metric, tally->metric)) tally->metric = "several";
    tally->answered += example->answer || example->answers.count;
    tally->few_answers += example->answers.count ? example->answers.count < 3 : example->answer != NULL;
    tally->several += example->picture_count > 1;
    see_gaps(tally, example);
    if (!example->picture_count && !tally->without++)
        snprintf(tally->first_without, sizeof tally->first_without, "%s", place_of(table, index).text);
    for (size_t i = 0; i < example->picture_count; i++) {
        const struct picture *picture = &example->pictures[i];
        int32_t least = picture->width_px < picture->height_px ? picture->width_px : picture->height_px;
        int32_t most = picture->width_px < picture->height_px ? picture->height_px : picture->width_px;
        tally->pictures++;
        for (size_t k = 0; k < 6; k++)
            tally->by_format[k] += picture->format && !strcmp(picture->format, PICTURE_FORMATS[k]);
        if (!tally->least_px || least < tally->least_px) tally->least_px = least;
        if (most > tally->most_px) tally->most_px = most;
        if (picture_tokens(job, picture) > 0) tokens += picture_tokens(job, picture);
    }
    tally->tokens += tokens;
    if (tokens > tally->most_tokens) tally->most_tokens = tokens;
}
/* Prints a text on one line, truncated. */
static void print_short(const char *label, const char *text) {
    char line[200] = "";
    size_t used = 0;
    for (; *text && used < 150; text++) {
        if (*text == '\n') {
            line[used++] = '\\';
            line[used++] = 'n';
        } else line[used++] = *text;
    }
    print_plain("    %-9s %.*s%s\n", label, (int)vp_utf8_valid_bytes(line, used), line, *text ? " .." : "");
}
/* The message that a sweep makes of a sample that no tool has asked, malloc'ed; NULL: it has none. */
static char *sweep_prompt(struct table *table, struct row *row, const struct example *example, size_t index) {
    struct text_buffer record = {NULL, 0, 0};
    struct prompt_fields fields = {0};
    vp_prompt_info info;
    vp_json_writer writer;
    char *prompt = NULL;
    int64_t number = (int64_t)index;
    if (is_own_lines(table)) number = (int64_t)json_rows_line(&table->json, index) - 1;
    else {
        vp_json_writer_init_sink(&writer, text_sink, &record, 0);
        vp_json_begin_object(&writer);
        table_put_record(&writer, table, example);
        vp_json_end_object(&writer);
        row->json.bytes = 0;
        text_add(&row->json, record.data, record.bytes);
        free(record.data);
        if (row_parse(row, NULL) != VP_OK) return NULL;
    }
    if (read_prompt_fields(&row->parsed.json, &fields, NULL) != VP_OK || fields.is_asked
        || build_message(&fields, known_set(table, NULL), 42, number, NULL, &prompt, &info, NULL) != VP_OK) {
        free(prompt);
        prompt = NULL;
    }
    prompt_fields_free(&fields);
    return prompt;
}
static void show_sample(const struct data_job *job, struct table *table, struct row *row, const struct example *example,
                        size_t index) {
    char *prompt;
    print_plain("  %s, id %.*s\n", place_of(table, index).text, (int)(example->id.bytes ? example->id.bytes : 1),
                example->id.bytes ? example->id.data : "-");
    if (example->reason[0]) {
        print_plain("    cannot be used: %s\n", example->reason);
        return;
    }
    for (size_t i = 0; i < example->picture_count; i++) {
        const struct picture *picture = &example->pictures[i];
        const int64_t tokens = picture_tokens(job, picture);
        print_plain("    image     %s %d x %d px, %zu bytes%s%s", picture->format, picture->width_px,
                    picture->height_px, picture->bytes, picture->file ? ", " : "",
                    picture->file ? picture->file : "");
        if (tokens >= 0) print_plain(", %lld tokens", (long long)tokens);
        print_plain("\n");
    }
    prompt = table->origin == ORIGIN_NONE && table->format != DATA_VQA && !example->part_count
                 ? sweep_prompt(table, row, example, index) : NULL;
    if (prompt || example->prompt) print_short("prompt", prompt ? prompt : example->prompt);
    free(prompt);
    for (size_t i = 0; !example->prompt && i < example->part_count; i++)
        if (example->parts[i].text) print_short("prompt", example->parts[i].text);
    if (example->answer) print_short("answer", example->answer);
    for (size_t i = 0; i < example->answers.count && i < 3; i++) print_short("reference", example->answers.items[i]);
}
static void print_columns(const struct table *table) {
    const size_t count = table_column_count(table);
    if (!count) return;
    print_plain("  columns   ");
    for (size_t i = 0; i < count && i < 40; i++)
        print_plain("%s%s", i ? ", " : "", table_column_name(table, i));
    print_plain("%s\n", count > 40 ? ", .." : "");
}
/* The scoring rule in a line of our own format, as --output writes it. */
static void read_own_metric(const vp_json *json, struct example *example) {
    char *name = json->node_count ? node_text(json, vp_json_get(json, 0, "metric")) : NULL;
    vp_score_metric metric;
    if (name && (example->answers.count || example->answer) && find_row_metric(name, &metric))
        example->metric = vp_score_metric_of(metric)->name;
    free(name);
}
/* What a sweep takes from the first line. */
static void see_first_line(const vp_json *json, struct file_tally *tally) {
    struct scoring scoring = {0};
    if (!json->node_count || !node_is(json, 0, VP_JSON_OBJECT)) return;
    tally->own_metric = scoring_default_metric(&scoring, json);
    scoring_free(&scoring);
    char *origin = node_text(json, vp_json_get(json, 0, "prompt_origin"));
    if (origin && strcmp(origin, "none")) {
        snprintf(tally->origin, sizeof tally->origin, "%s", origin);
        tally->new_tokens = (int32_t)node_int(json, 0, "max_new_tokens", 0);
    }
    free(origin);
}
/* Collects the keys of a row, so that a misspelled one can be found. */
static void keep_keys(struct file_tally *tally, const vp_json *json) {
    char *name;
    if (tally->keys.count || !json->node_count || !node_is(json, 0, VP_JSON_OBJECT)) return;
    for (uint32_t key = 1; key < json->nodes[0].end; key = json->nodes[key + 1].end)
        text_list_take(&tally->keys, node_text(json, key));
    if ((name = node_text(json, vp_json_get(json, 0, "dataset"))) != NULL)
        snprintf(tally->set_name, sizeof tally->set_name, "%.63s", name);
    free(name);
}
/* Prints what every sample lacks, with the keys that the rows have instead. */
static void print_missing(const struct file_tally *tally, const char *what, const char *keys) {
    print_plain("  note      no sample has %s: expected the key %s, found ", what, keys);
    for (size_t i = 0; i < tally->keys.count && i < 40; i++) print_plain("%s%s", i ? ", " : "", tally->keys.items[i]);
    print_plain("%s\n", tally->keys.count > 40 ? ", .." : "");
}
static void print_count(size_t count, const char *what) {
    if (count) print_plain("  note      %zu sample%s %s\n", count, count == 1 ? " has" : "s have", what);
}
/* Prints notes about data that a sweep would miss. */
static void print_notes(const struct table *table, const struct file_tally *tally) {
    const size_t repeated = count_repeated(tally->ids, tally->id_count);
    const int is_own = table->format == DATA_VLMPROF || table->format == DATA_TSV || table->format == DATA_CSV
                       || ((table->parquet || table->arrow) && !table->task);
    char *annotations = annotations_path(table->path);
    if (is_own && tally->usable && !tally->pictures) print_missing(tally, "an image", "\"image\"");
    if (is_own && tally->usable && !tally->answered) print_missing(tally, "an answer", "\"answer\" or \"answers\"");
    print_count(tally->no_question, "an empty question");
    if (tally->answered) print_count(tally->no_answer, "no answer to score by");
    print_count(tally->blank_answer, "only empty reference answers, which an empty answer meets");
    print_count(tally->no_option, "an answer that is none of its options, so nothing scores");
    if (repeated)
        print_plain("  note      %zu id%s more than once\n", repeated, repeated == 1 ? " is there" : "s are there");
    if (table->format == DATA_VQA && !table->notes_path)
        print_plain("  note      no annotations, so nothing is scored: %.300s is missing; use --annotations for "
                    "another file\n", annotations ? annotations : "a file like v2_mscoco_val2014_annotations.json");
    if (tally->several)
        print_plain("  note      %zu sample%s several pictures; MolmoE, Molmo, Molmo2 and LLaVA accept only one\n",
                    tally->several, tally->several == 1 ? " has" : "s have");
    if (tally->by_format[5]) print_plain("  note      TIFF pictures are not decoded: convert them to PNG\n");
    free(annotations);
}
/* The scoring rule of a sweep: the data's own, or the default for the set's name. */
static const char *rule_of(const struct table *table, const struct file_tally *tally) {
    vp_score_metric metric, unknown;
    if (tally->metric || !tally->answered) return tally->metric ? tally->metric : "none";
    const vp_prompt_dataset *known = known_set(table, NULL);
    vp_score_metric_for_dataset("", &unknown);
    vp_score_metric_for_dataset(known ? known->name : table->variant, &metric);
    if (metric == unknown) vp_score_metric_for_dataset(tally->set_name, &metric);
    if (metric == unknown && !known && is_own_lines(table)) metric = tally->own_metric;
    return vp_score_metric_of(metric)->name;
}
/* Returns 1 for the summary of VQA v2's pair of files. A sweep without --prompt_origin uses its own prompts and scoring
 * rules for them. */
static int asks_pair_itself(const struct data_job *job, const struct table *table) {
    return table->format == DATA_VQA && !text_of(job->options, "prompt_origin") && !is_given(job->options, "json")
           && !job->has_output;
}
/* The maximum of new tokens per answer to this set in a sweep; 0 if the file does not identify the set. */
static int32_t new_tokens_of(const struct data_job *job, const struct table *table, const struct file_tally *tally) {
    const vp_prompt_dataset *known = known_set(table, tally->set_name);
    if (tally->origin[0]) return tally->new_tokens;
    if (is_own_lines(table)) return known ? known->max_new_tokens : 0;
    if (!asks_pair_itself(job, table)) return table_new_tokens(table);
    return (known ? known : vp_prompt_dataset_find("coco_2014_vqa"))->max_new_tokens;
}
/* Prints a line about samples that the rule can never score as correct. */
static void print_few_answers(const struct table *table, const struct file_tally *tally) {
    char line[200];
    vp_score_metric metric;
    if (tally->few_answers && vp_score_metric_find(rule_of(table, tally), &metric) == VP_OK
        && (metric == VP_SCORE_VQA_SEED || metric == VP_SCORE_VQA_OFFICIAL))
        print_plain("  note      %s\n", few_answers_text(metric, tally->few_answers, line, sizeof line));
}
static void print_tally(const struct data_job *job, const struct table *table, const struct file_tally *tally) {
    const char *const origins[] = {tally->with_options ? "none: the question and its options, as a sweep asks them"
                                                       : "none: the raw question", "lmms_eval", "vlmevalkit"};
    print_plain("%s: %s%s%s\n", table->path, format_title(table->format), table->notes_path ? " with " : "",
                table->notes_path ? table->notes_path : "");
    print_plain("  rows      %zu: %zu sample%s", table->row_count, tally->usable, plural_s((int64_t)tally->usable));
    if (tally->bad) print_plain(", %zu cannot be used", tally->bad);
    if (tally->dropped) print_plain(", %zu left out (no picture)", tally->dropped);
    print_plain("\n");
    print_plain("  set       %s\n", table->task ? table->task->name : "unknown");
    print_plain("  prompt    %s%s\n", tally->origin[0] ? tally->origin : origins[table->origin],
                asks_pair_itself(job, table) ? ", as in a sweep (Molmo adds its style, such as \"vqa2: \"); "
                                               "--json and --output use lmms_eval" : "");
    print_plain("  metric    %s%s\n", rule_of(table, tally),
                tally->metric || !tally->answered ? "" : ", the default; sweep --metric sets another");
    print_few_answers(table, tally);
    if (new_tokens_of(job, table, tally))
        print_plain("  answers   at most %d new tokens; sweep --max_new_tokens sets another limit\n",
                    (int)new_tokens_of(job, table, tally));
    print_plain("  images    %zu", tally->pictures);
    for (size_t i = 0; i < 6; i++)
        if (tally->by_format[i]) print_plain(", %zu %s", tally->by_format[i], PICTURE_FORMATS[i]);
    if (tally->pictures)
        print_plain(", sides of %d to %d px%s", tally->least_px, tally->most_px,
                    is_given(job->options, "check") ? ", all decoded" : " (headers only; --check decodes)");
    print_plain("\n");
    if (job->family)
        print_plain("  tokens    %lld in all images by the rule of %s, at most %lld in one sample\n",
                    (long long)tally->tokens, job->family->preset->name, (long long)tally->most_tokens);
    print_columns(table);
    print_notes(table, tally);
    if (tally->without && tally->pictures)
        print_plain("  trouble   %zu sample%s no picture and will be measured as text only; the first: %s\n",
                    tally->without, tally->without == 1 ? " has" : "s have", tally->first_without);
    for (size_t i = 0; i < tally->troubles.count; i++) print_plain("  trouble   %s\n", tally->troubles.items[i]);
    if (tally->bad > tally->troubles.count)
        print_plain("  trouble   %zu more; --json shows all\n", tally->bad - tally->troubles.count);
}

/* ---- files */
/* Decodes the pictures of a sample; damage is its reason. */
static void check_pictures(struct example *example, const struct row *row) {
    for (size_t i = 0; i < example->picture_count && !example->reason[0]; i++) {
        const struct picture *picture = &example->pictures[i];
        vp_error error = {VP_OK, -1, "", ""};
        char *file = NULL;
        size_t bytes = picture->bytes;
        vp_image image;
        vp_result result = picture->path ? vp_file_read(picture->file, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error)
                                         : VP_OK;
        if (result == VP_OK)
            result = any_image_decode(file ? (const uint8_t *)file : row->blobs[picture->blob].data, bytes, &image,
                                      &error);
        if (result == VP_OK) vp_image_free(&image);
        else example_fail(example, "picture %zu cannot be decoded: %.300s", i + 1,
                          error.text[0] ? error.text : vp_result_text(result));
        free(file);
    }
}
static int read_file(struct data_job *job, const char *path) {
    struct table_wish wish = {NULL, NULL, NULL, NULL, NULL};
    const struct options *options = job->options;
    struct table table;
    struct file_tally tally = {0};
    struct row row = {0};
    struct example example = {0};
    struct text_buffer line = {NULL, 0, 0};
    vp_error error = {VP_OK, -1, "", ""};
    const size_t show = is_given(options, "json") ? 0 : (size_t)number_of(options, "samples");
    vp_result result;
    int code = 0, is_plain, is_pair;
    if (strcmp(text_of(options, "data_format"), "auto")) wish.format = text_of(options, "data_format");
    wish.task = text_of(options, "dataset_name");
    wish.origin = text_of(options, "prompt_origin");
    wish.image_dir = text_of(options, "image_dir");
    wish.annotations = text_of(options, "annotations");
    if ((result = table_open(&table, path, &wish, &error)) != VP_OK)
        return complain_result(EXIT_INPUT, path, result, &error);
    is_plain = is_own_lines(&table);
    is_pair = asks_pair_itself(job, &table);
    if (is_pair) table.origin = ORIGIN_NONE;
    for (int shows = 0; shows <= (show > 0) && !code; shows++) { /* the summary first, then the samples shown */
        if (shows) print_tally(job, &table, &tally);
        for (size_t i = 0, seen = 0; i < table.row_count && !code && !interrupted
                           && (!shows || (tally.usable && seen < show)); i++) {
            if (!table_example(&table, i, &row, &example)) {
                tally.dropped++;
                continue;
            }
            seen++;
            if (is_plain && example.reason[0] && !tally.refused[0])
                snprintf(tally.refused, sizeof tally.refused, "%s: %s", place_of(&table, i).text,
                         example.reason);
            example_see_pictures(&example, &row, table.folder, table.image_dir, is_given(options, "json") && !shows);
            if (is_given(options, "check")) check_pictures(&example, &row);
            if (shows) {
                show_sample(job, &table, &row, &example, i);
                continue;
            }
            if (is_pair || is_plain) example.metric = NULL;
            if (table.format == DATA_VLMPROF) read_own_metric(&row.parsed.json, &example);
            if (is_plain && !tally.usable) see_first_line(&row.parsed.json, &tally);
            keep_keys(&tally, &row.parsed.json);
            count_sample(job, &table, &tally, &example, i);
            if (is_given(options, "json")) code = print_sample(job, &table, &row, i, &example, &line);
            if (!code && job->has_output && !example.reason[0])
                code = save_sample(job, &table, &row, i, &example, &line);
        }
    }
    if (!show && !is_given(options, "json") && !code) print_tally(job, &table, &tally);
    if (!code && is_given(options, "json") && tally.bad)
        complain(0, "%s: %zu of %zu rows cannot be used; %s", path, tally.bad, table.row_count,
                 tally.troubles.items[0]);
    if (!code && !table.row_count) code = complain(EXIT_INPUT, "%s: there is no row in it", path);
    if (!code && tally.refused[0]) code = complain(EXIT_INPUT, "%s: %s; a sweep stops at it", path, tally.refused);
    job->usable += tally.usable;
    job->bad += tally.bad;
    free(line.data);
    text_list_free(&tally.keys);
    free(tally.ids);
    text_list_free(&tally.troubles);
    row_free(&row);
    example_free(&example);
    table_close(&table);
    return interrupted && !code ? EXIT_INTERRUPTED : code;
}
static int find_files(const struct options *options, struct text_list *paths) {
    int code = 0;
    for (size_t i = 0; i < options->operand_count && !code; i++) {
        const char *path = options->operands[i];
        size_t before = paths->count;
        if (!is_folder(path)) {
            text_list_copy(paths, path);
            continue;
        }
        code = table_files(path, paths);
        if (code || paths->count > before) continue;
        code = complain(EXIT_INPUT,
                        "%s: this folder has no .parquet or .arrow file; a folder of pictures can be used directly: "
                        "vlmprof sweep --data %s -p TEXT",
                        path, path);
    }
    return code;
}
/* Complains about an unknown evaluation set and suggests similar names. Returns EXIT_USAGE. */
static int unknown_task(const char *name) {
    struct text_buffer near = {NULL, 0, 0};
    for (size_t i = 0; task_at(i); i++) add_near_word(&near, name, "", task_at(i)->name);
    int code = complain(EXIT_USAGE,
                        "--dataset_name: unknown evaluation set \"%.60s\"%.500s%s vlmprof help tasks lists them", name,
                        near.bytes ? near.data : "", near.bytes ? "?" : ";");
    free(near.data);
    return code;
}
static int run_command(const struct options *options) {
    struct text_list paths = {NULL, 0};
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    int code, worst = 0;
    struct data_job job = {.options = options};
    if (!options->operand_count) return complain(EXIT_USAGE, "data needs a file: vlmprof data FILE..");
    if (text_of(options, "dataset_name") && !task_find(text_of(options, "dataset_name")))
        return unknown_task(text_of(options, "dataset_name"));
    if (is_given(options, "family")) {
        job.family = resize(NULL, 1, sizeof *job.family);
        if ((code = family_by_name("family", text_of(options, "family"), job.family)) != 0
            || (code = family_set_keys(options, job.family, 1)) != 0) {
            free(job.family);
            return code;
        }
    }
    if ((code = find_files(options, &paths)) == 0 && is_given(options, "images"))
        code = make_folder(text_of(options, "images"));
    if (!code && is_given(options, "output")) {
        result = vp_output_open(text_of(options, "output"), &job.output, &error);
        if (result != VP_OK) code = complain_result(EXIT_OUTPUT, text_of(options, "output"), result, &error);
        else job.has_output = 1;
    }
    for (size_t i = 0; i < paths.count && !code; i++) {
        int file_code = read_file(&job, paths.items[i]);
        if (file_code == EXIT_INPUT) worst = file_code; /* the other files are still read */
        else code = file_code;
    }
    if (job.has_output && code) vp_output_discard(&job.output);
    else if (job.has_output && (result = vp_output_commit(&job.output, &error)) != VP_OK)
        code = complain_result(EXIT_OUTPUT, text_of(options, "output"), result, &error);
    text_list_free(&paths);
    free(job.family);
    if (!code && !worst && !job.usable && job.bad) return complain(EXIT_INPUT, "no row can be used");
    return code ? code : worst;
}

const struct command command_data = {
    "data",
    "FILE..",
    "show what a data file contains: format, samples, prompts, metric",
    "vlmprof data MMStar.tsv   # DocVQA.parquet, messages.jsonl, llava.json ..; --json prints every sample",
    SIZE_MAX,
    COMMAND_OPTIONS(DATA_OPTIONS),
    "family",
    run_command};
