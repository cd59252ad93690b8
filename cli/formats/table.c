/* table.c: reads a data file of any known format as samples: detects the format, and has the code shared by the
 * readers. */
#include "formats/table.h"

#include "base/files.h"
#include "vlmprof_file.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const struct { const char *name, *title; } FORMATS[DATA_FORMAT_COUNT] = {
#define DATA_FORMAT_ROW(format, name, title) {name, title},
    DATA_FORMATS(DATA_FORMAT_ROW)
#undef DATA_FORMAT_ROW
};
const char *format_title(enum data_format format) { return FORMATS[format].title; }

/* ---- shared by the readers */
char *member_text(const vp_json *json, uint32_t object, const char *key) {
    uint32_t node = vp_json_get(json, object, key);
    if (node_is(json, node, VP_JSON_NUMBER))
        return copy_text(json->text + json->nodes[node].start, (size_t)json->nodes[node].bytes);
    return node_text(json, node);
}
void read_texts(const vp_json *json, uint32_t node, struct text_list *list) {
    uint32_t end = node_is(json, node, VP_JSON_ARRAY) ? json->nodes[node].end : node;
    char *text;
    if (node == VP_JSON_NONE) return;
    for (uint32_t i = node + 1; i < end; i = json->nodes[i].end) {
        if (node_is(json, i, VP_JSON_OBJECT)) text = member_text(json, i, "answer");
        else text = node_is(json, i, VP_JSON_NUMBER)
                        ? copy_text(json->text + json->nodes[i].start, (size_t)json->nodes[i].bytes)
                        : node_text(json, i);
        if (text) text_list_take(list, text);
    }
    if (node_is(json, node, VP_JSON_NUMBER))
        text_list_take(list, copy_text(json->text + json->nodes[node].start, (size_t)json->nodes[node].bytes));
    else if ((text = node_text(json, node)) != NULL) text_list_take(list, text);
}
void set_id(struct example *example, const vp_json *json, const char *key, size_t otherwise) {
    uint32_t node = vp_json_get(json, 0, key);
    vp_json_writer writer;
    example->id.bytes = 0;
    vp_json_writer_init_sink(&writer, text_sink, &example->id, 0);
    if (node_is(json, node, VP_JSON_NUMBER) || node_is(json, node, VP_JSON_STRING)) json_node(&writer, json, node);
    else vp_json_int(&writer, (int64_t)otherwise);
}
void add_path(struct example *example, char *path) { example_add_picture(example)->path = path; }
void add_blobs(struct example *example, const vp_json *json, uint32_t node) {
    int64_t blob;
    char *path;
    if (node_is(json, node, VP_JSON_ARRAY)) {
        for (uint32_t i = node + 1; i < json->nodes[node].end; i = json->nodes[i].end) add_blobs(example, json, i);
        return;
    }
    if (node_is(json, node, VP_JSON_STRING)) {
        if ((path = node_text(json, node)) != NULL) add_path(example, path);
        return;
    }
    if (!node_is(json, node, VP_JSON_OBJECT)) return;
    uint32_t bytes = vp_json_get(json, node, "bytes");
    if (vp_json_to_int(json, vp_json_get(json, node_is(json, bytes, VP_JSON_OBJECT) ? bytes : node, "blob"), &blob) ==
        VP_OK)
        example_add_picture(example)->blob = (size_t)blob;
    else if (node_is(json, bytes, VP_JSON_STRING)) example_fail(example, "a picture is text, not a picture file");
    else if ((path = member_text(json, node, "path")) != NULL) add_path(example, path);
}
void set_default_metric(const struct table *table, struct example *example, enum prompt_origin family) {
    if (table->is_origin_given && table->origin != ORIGIN_NONE) family = table->origin;
    if (!table->task) return;
    if (family == ORIGIN_NONE && table->format == DATA_POPE) example->metric = "pope_official";
    else if (family == ORIGIN_NONE && table->format == DATA_MATHVISTA) example->metric = "mathvista_official";
    else if (family == ORIGIN_NONE && table->format == DATA_OCRBENCH) example->metric = "ocrbench_vlmevalkit";
    else example->metric = family == ORIGIN_VLMEVALKIT ? table->task->vlmevalkit_metric : table->task->lmms_metric;
}

void settle_choice(const vp_json *json, struct example *example) {
    const uint32_t node = vp_json_get(json, 0, "answer");
    char *answer = member_text(json, 0, "answer"), letter = 0;
    int64_t index = -1;
    int count = 0, is_found = 0;
    if (answer && vp_json_to_int(json, node, &index) != VP_OK && answer[0] >= 'A' && answer[0] <= 'Z' && !answer[1])
        index = answer[0] - 'A';
    for (; count < OPTIONS_MAX && example->options[count]; count++)
        is_found |= count == index || (answer && !strcmp(example->options[count], answer));
    if (count > 1 && is_found) {
        text_list_free(&example->answers);
        example->has_answers = 0;
        if (!example->metric) example->metric = "mc";
        letter = (char)('A' + (index < 0 ? 0 : index));
        example->answer = node_is(json, node, VP_JSON_NUMBER) ? copy_text(&letter, 1)
                                                              : copy_text(answer, strlen(answer));
    }
    free(answer);
}

int names_part(const char *name, const char *part) {
    for (; *name; name++) if (!strncasecmp(name, part, strlen(part))) return 1;
    return 0;
}
enum prompt_form table_form(const struct table *table) {
    const char *name = table->variant;
    const int is_cot = names_part(name, "cot");
    if (!table->task || table->origin == ORIGIN_NONE) return FORM_NONE;
    if (table->origin == ORIGIN_VLMEVALKIT) {
        if (table->task->vlmevalkit != FORM_CHOICE_PRO) return table->task->vlmevalkit;
        if (names_part(name, "pro_v")) return is_cot ? FORM_PICTURE_PRO_COT : FORM_PICTURE_PRO;
        return is_cot ? FORM_CHOICE_PRO_COT : FORM_CHOICE_PRO;
    }
    switch (table->task->lmms) {
    case FORM_MMMU_PRO:
        if (names_part(name, "composite")) return FORM_MMMU_PRO_COMPOSITE;
        return !is_cot ? FORM_MMMU_PRO : names_part(name, "vision") ? FORM_MMMU_PRO_VISION_COT : FORM_MMMU_PRO_COT;
    case FORM_MATHVISTA:
        return is_cot ? FORM_MATHVISTA_COT : names_part(name, "solution") ? FORM_MATHVISTA_SOLUTION : FORM_MATHVISTA;
    case FORM_CAPTION: return names_part(name, "karpathy") ? FORM_BRIEF : FORM_CAPTION;
    default: return table->task->lmms;
    }
}
int32_t table_new_tokens(const struct table *table) {
    if (!table->task || table->origin == ORIGIN_NONE) return 0;
    return table->task->lmms == FORM_MMMU_PRO && names_part(table->variant, "cot") ? 16384 : table->task->new_tokens;
}

/* ---- detection of the format */
const char *foreign_format(const unsigned char *data, size_t bytes) {
    static const struct { const char *magic; size_t bytes; const char *name;
    } known[] = {{"PK\3\4", 4, "a ZIP archive (or a spreadsheet: save it as TSV)"},
                 {"\x1f\x8b", 2, "compressed with gzip: decompress it with gunzip"},
                 {"\x28\xb5\x2f\xfd", 4, "compressed with Zstandard: decompress it with zstd -d"},
                 {"\xfd"
                  "7zXZ",
                  5, "compressed with xz: decompress it with unxz"},
                 {"BZh", 3, "compressed with bzip2: decompress it with bunzip2"},
                 {"SQLite format 3", 15, "an SQLite database"},
                 {"\x89HDF", 4, "an HDF5 file"},
                 {"%PDF", 4, "a PDF file"},
                 {"\x93NUMPY", 6, "a NumPy array"},
                 {"\x80\x02", 2, "a pickle"},
                 {"\x80\x03", 2, "a pickle"},
                 {"\x80\x04", 2, "a pickle"},
                 {"\x80\x05", 2, "a pickle"},
                 {"GGUF", 4, "a GGUF model"},
                 {"\xff\xfe", 2, "UTF-16 text: save it as UTF-8"},
                 {"\xfe\xff", 2, "UTF-16 text: save it as UTF-8"},
                 {"\x89PNG", 4, "a PNG picture"},
                 {"\xff\xd8\xff", 3, "a JPEG picture"},
                 {"RIFF", 4, "a WebP picture or an audio file"},
                 {"GIF8", 4, "a GIF picture"},
                 {"II*", 3, "a TIFF picture"},
                 {"MM\0*", 4, "a TIFF picture"},
                 {"\x7f"
                  "ELF",
                  4, "a program"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (bytes >= known[i].bytes && !memcmp(data, known[i].magic, known[i].bytes)) return known[i].name;
    if (bytes > 262 && !memcmp(data + 257, "ustar", 5)) return "a tar archive: unpack it";
    return NULL;
}
/* The separator of a first line that names columns; 0 if it does not name columns. */
static char separator_of(const char *text, size_t bytes) {
    size_t tabs = 0, commas = 0, end = 0;
    int quoted = 0;
    for (; end < bytes && (quoted || (text[end] != '\n' && text[end] != '\r')); end++) {
        if (text[end] == '"') quoted = !quoted;
        tabs += text[end] == '\t' && !quoted;
        commas += text[end] == ',' && !quoted;
    }
    return tabs ? '\t' : commas ? ',' : 0;
}
static vp_result look(struct table *table, const char *format, char *separator, vp_error *error) {
    struct source source;
    char start[4096];
    const char *at = start, *foreign;
    vp_result result = source_open(&source, table->path, error);
    if (result != VP_OK) return result;
    ssize_t got = source_read(&source, 0, start, sizeof start);
    source_close(&source);
    if (got < 0) return vp_fail(error, VP_ERR_READ, 0, table->path, "cannot be read");
    *separator = 0;
    table->format = DATA_VLMPROF; /* JSON: determined by its records */
    if (format) {
        while (strcmp(FORMATS[table->format].name, format)) table->format++;
        *separator = table->format == DATA_TSV ? '\t' : table->format == DATA_CSV ? ',' : 0;
        return VP_OK;
    }
    if (!got) return vp_fail(error, VP_ERR_FORMAT, 0, table->path, "the file is empty");
    if (got >= 4 && (!memcmp(start, "PAR1", 4) || !memcmp(start, "PARE", 4))) {
        table->format = DATA_PARQUET;
        return VP_OK;
    }
    if ((got >= 8 && !memcmp(start, "\xff\xff\xff\xff", 4)) || (got >= 6 && !memcmp(start, "ARROW1", 6))) {
        table->format = DATA_ARROW;
        return VP_OK;
    }
    if ((foreign = foreign_format((const unsigned char *)start, (size_t)got)) != NULL)
        return vp_failf(error, VP_ERR_UNSUPPORTED, 0, table->path, "this is %s", foreign);
    if (memchr(start, 0, (size_t)got))
        return vp_fail(error, VP_ERR_UNSUPPORTED, 0, table->path,
                       "unknown binary format; --data accepts JSONL, JSON, TSV, CSV, Parquet and Arrow");
    if (got >= 3 && !memcmp(start, "\xef\xbb\xbf", 3)) at += 3;
    while (at < start + got && strchr(" \t\r\n", *at)) at++;
    if (at < start + got && (*at == '{' || *at == '[')) return VP_OK;
    *separator = separator_of(at, (size_t)(start + got - at));
    if (!*separator)
        return vp_fail(
            error, VP_ERR_FORMAT, 0, table->path,
            "expected JSONL, JSON, TSV, CSV, Parquet or Arrow, but the file does not begin with {, [ or column names");
    table->format = *separator == '\t' ? DATA_TSV : DATA_CSV;
    return VP_OK;
}

/* ---- opening */
int compare_notes(const void *left_item, const void *right_item) {
    const struct note_key *left = (const struct note_key *)left_item, *right = (const struct note_key *)right_item;
    return (left->id > right->id) - (left->id < right->id);
}
char *annotations_path(const char *path) {
    static const char word[] = "OpenEnded_", tail[] = "_questions.json";
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *open_ended = strstr(name, word),
               *end = strstr(name, tail);
    struct text_buffer text = {NULL, 0, 0};
    if (!open_ended || !end || end < open_ended + strlen(word) || end[strlen(tail)]) return NULL;
    text_add(&text, path, (size_t)(open_ended - path));
    text_add(&text, open_ended + strlen(word), (size_t)(end - open_ended) - strlen(word));
    text_add_string(&text, "_annotations.json");
    return text.data;
}
char *find_annotations(const char *path) {
    char *annotations = annotations_path(path);
    if (annotations && access(annotations, F_OK) == 0) return annotations;
    free(annotations);
    return NULL;
}
static vp_result open_notes(struct table *table, const char *annotations, vp_error *error) {
    vp_result result;
    table->notes_path = annotations ? copy_text(annotations, strlen(annotations)) : find_annotations(table->path);
    if (!table->notes_path) return VP_OK;
    if ((result = json_rows_open(&table->notes, table->notes_path, error)) != VP_OK) return result;
    table->note_keys = resize(NULL, table->notes.count + 1, sizeof *table->note_keys);
    for (size_t i = 0; i < table->notes.count; i++) {
        row_clear(&table->note);
        if ((result = json_rows_read(&table->notes, i, &table->note, error)) != VP_OK
            || (result = row_parse(&table->note, error)) != VP_OK)
            return result;
        table->note_keys[i].id = node_int(&table->note.parsed.json, 0, "question_id", -1);
        table->note_keys[i].record = i;
    }
    table->note_count = table->notes.count;
    qsort(table->note_keys, table->note_count, sizeof *table->note_keys, compare_notes);
    return VP_OK;
}
/* Complains about the annotations of VQA v2, which contain no questions, and about files like COCO's captions. */
static vp_result annotations_alone(struct table *table, vp_error *error) {
    struct row row = {0};
    int has_caption = 0, has_question = 0;
    static const char tail[] = "_annotations.json";
    const char *word = strstr(table->name, "mscoco_"), *end = strstr(table->name, tail);
    char questions[160] = "v2_OpenEnded_mscoco_.._questions.json";
    if (table->json.count && json_rows_read(&table->json, 0, &row, NULL) == VP_OK && row_parse(&row, NULL) == VP_OK) {
        has_caption = has_value(&row.parsed.json, 0, "caption");
        has_question = has_value(&row.parsed.json, 0, "question");
    }
    row_free(&row);
    if (has_caption || has_question)
        return vp_failf(error, VP_ERR_UNSUPPORTED, 0, table->path,
                        "this is COCO's form, images and annotations with %s, which is not read: write JSONL, a line "
                        "{\"image\": FILE_NAME, %s} for each", has_caption ? "captions" : "questions",
                        has_caption ? "\"answers\": [CAPTIONS]" : "\"question\": TEXT, \"answers\": [TEXT]");
    if (word && end && end > word && !end[strlen(tail)])
        snprintf(questions, sizeof questions, "%.*sOpenEnded_%.*s_questions.json", (int)(word - table->name),
                 table->name, (int)(end - word), word);
    return vp_failf(error, VP_ERR_FORMAT, 0, table->path,
                    "these are the annotations of VQA v2, which have no questions: give the questions file (%.120s) as "
                    "data, and this one with --annotations", questions);
}
static vp_result open_json(struct table *table, const struct table_wish *wish, vp_error *error) {
    struct row row = {0};
    vp_result result = json_rows_open(&table->json, table->path, error);
    if (result != VP_OK) return result;
    if (table->json.shape == SHAPE_MEMBER && !strcmp(table->json.key, "annotations"))
        return annotations_alone(table, error);
    table->row_count = table->json.count;
    for (size_t i = 0; i < table->json.count && i < 20 && !wish->format;
         i++) { /* determined by the first readable record */
        row_clear(&row);
        if (json_rows_read(&table->json, i, &row, NULL) != VP_OK || row_parse(&row, NULL) != VP_OK
            || !node_is(&row.parsed.json, 0, VP_JSON_OBJECT))
            continue;
        table->format = json_format(&row.parsed.json, table->json.shape, table->json.key);
        break;
    }
    row_free(&row);
    return table->format == DATA_VQA ? open_notes(table, wish->annotations, error) : VP_OK;
}
/* The evaluation set that a format belongs to. */
static const char *task_of_format(const struct table *table) {
    switch (table->format) {
    case DATA_DOCVQA: return "docvqa";
    case DATA_INFOVQA: return "infovqa";
    case DATA_TEXTVQA: return "textvqa";
    case DATA_CHARTQA: return "chartqa";
    case DATA_POPE: return "pope";
    case DATA_OCRBENCH: return "ocrbench";
    case DATA_MATHVISTA: return "mathvista";
    case DATA_TALLYQA: return "tallyqa";
    case DATA_VQA: return strstr(table->stem, "v2_") || !task_find(table->stem) ? "vqav2" : table->stem;
    case DATA_TSV: case DATA_CSV: case DATA_PARQUET: case DATA_ARROW: return table->stem;
    default: return "";
    }
}
static void settle_task(struct table *table, const struct table_wish *wish) {
    const int is_message = table->format >= DATA_LLAVA || table->format == DATA_VLMPROF;
    if (wish->task) table->task = task_find(wish->task);
    if (!table->task && !wish->task && (table->parquet || table->arrow)) table->task = column_task(table);
    if (!table->task && !wish->task) table->task = task_find(task_of_format(table));
    table->variant = table->task && wish->task ? wish->task : table->stem;
    table->is_origin_given = wish->origin != NULL;
    if (wish->origin)
        table->origin = !strcmp(wish->origin, "lmms_eval")    ? ORIGIN_LMMS
                        : !strcmp(wish->origin, "vlmevalkit") ? ORIGIN_VLMEVALKIT
                                                              : ORIGIN_NONE;
    else if (is_message || (!table->task && (table->parquet || table->arrow))) table->origin = ORIGIN_NONE;
    else table->origin = table->format == DATA_TSV || table->format == DATA_CSV ? ORIGIN_VLMEVALKIT : ORIGIN_LMMS;
}
int asks_itself(const struct table *table) {
    const enum prompt_form form = table_form(table);
    return form == FORM_DESCRIPTION || form == FORM_CAPTION || form == FORM_BRIEF || form == FORM_PICTURE_PRO ||
           form == FORM_PICTURE_PRO_COT;
}
/* A table of text, or one of an unknown set, needs a column "question". */
static vp_result check_question(const struct table *table, int is_text, vp_error *error) {
    const size_t count = table_column_count(table);
    struct text_buffer columns = {NULL, 0, 0};
    int is_there = is_text ? asks_itself(table) : table->task || !(table->parquet || table->arrow);
    for (size_t i = 0; i < count && !is_there; i++) {
        is_there = !strcmp(table_column_name(table, i), "question");
        text_add_string(&columns, i ? ", " : "");
        text_add_string(&columns, table_column_name(table, i));
    }
    if (!is_there)
        vp_failf(error, VP_ERR_FORMAT, 0, table->path,
                 "this is a table without a column \"question\"; its columns are %.200s",
                 columns.bytes ? columns.data : "none");
    free(columns.data);
    return is_there ? VP_OK : VP_ERR_FORMAT;
}
vp_result table_open(struct table *table, const char *path, const struct table_wish *wish, vp_error *error) {
    const char *slash = strrchr(path, '/'), *dot;
    char separator = 0;
    memset(table, 0, sizeof *table);
    table->tsv.cells.window.source.fd = table->json.window.source.fd = table->notes.window.source.fd = -1;
    table->path = copy_text(path, strlen(path));
    table->folder = slash ? copy_text(path, slash == path ? 1 : (size_t)(slash - path)) : copy_text(".", 1);
    table->name = copy_text(slash ? slash + 1 : path, strlen(slash ? slash + 1 : path));
    dot = strrchr(table->name, '.');
    table->stem = copy_text(table->name, dot && dot > table->name ? (size_t)(dot - table->name) : strlen(table->name));
    table->image_dir = wish->image_dir;
    vp_result result = look(table, wish->format, &separator, error);
    if (result == VP_OK && separator) {
        result = tsv_open(&table->tsv, table->path, separator, error);
        table->row_count = table->tsv.cells.row_count;
    } else if (result == VP_OK && table->format == DATA_PARQUET) {
        result = parquet_open(&table->parquet, table->path, error);
        if (result == VP_OK) table->row_count = (size_t)parquet_row_count(table->parquet);
    } else if (result == VP_OK && table->format == DATA_ARROW) {
        result = arrow_open(&table->arrow, table->path, error);
        if (result == VP_OK) table->row_count = (size_t)arrow_row_count(table->arrow);
    } else if (result == VP_OK) result = open_json(table, wish, error);
    if (result == VP_OK) settle_task(table, wish);
    if (result == VP_OK) result = check_question(table, separator != 0, error);
    if (result != VP_OK) table_close(table);
    return result;
}
void table_close(struct table *table) {
    tsv_close(&table->tsv);
    parquet_close(table->parquet);
    arrow_close(table->arrow);
    json_rows_close(&table->json);
    json_rows_close(&table->notes);
    row_free(&table->note);
    FREE_ALL(table->note_keys, table->notes_path, table->path, table->folder, table->name, table->stem);
    memset(table, 0, sizeof *table);
}

static int add_folder(const char *folder, int depth, const char *ending, struct text_list *paths) {
    struct text_list names = {NULL, 0};
    int code = names_of_folder(folder, &names);
    for (size_t i = 0; i < names.count && !code; i++) {
        const char *dot = strrchr(names.items[i], '.');
        char *path = join_path(folder, names.items[i]);
        if (names.items[i][0] == '.') { }
        else if (is_folder(path)) code = depth < 6 ? add_folder(path, depth + 1, ending, paths) : 0;
        else if (dot && !strcmp(dot, ending) && strncmp(names.items[i], "cache-", 6)) /* datasets.map writes those */
            text_list_copy(paths, path);
        free(path);
    }
    text_list_free(&names);
    return code;
}
int table_files(const char *folder, struct text_list *paths) {
    const size_t before = paths->count;
    int code = add_folder(folder, 0, ".parquet", paths);
    return code || paths->count > before ? code : add_folder(folder, 0, ".arrow", paths);
}
size_t table_column_count(const struct table *table) {
    return table->parquet ? parquet_column_count(table->parquet)
           : table->arrow ? arrow_column_count(table->arrow)
                          : table->tsv.cells.names.count;
}
const char *table_column_name(const struct table *table, size_t column) {
    return table->parquet ? parquet_column_name(table->parquet, column)
           : table->arrow ? arrow_column_name(table->arrow, column)
                          : table->tsv.cells.names.items[column];
}

/* ---- rows */
static void fill(struct table *table, struct row *row, size_t index, struct example *example) {
    switch (table->format) {
    case DATA_TSV: case DATA_CSV: read_tsv_row(table, row, index, example); break;
    case DATA_PARQUET: case DATA_ARROW: read_column_row(table, row, index, example); break;
    case DATA_LLAVA: case DATA_LLAVA_QUESTIONS: case DATA_OPENAI: case DATA_AIPERF: case DATA_VLLM:
        read_message_row(table, row, index, example);
        break;
    default: read_json_row(table, row, index, example);
    }
}
int table_example(struct table *table, size_t index, struct row *row, struct example *example) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    row_clear(row);
    example_clear(example);
    if (table->format == DATA_TSV || table->format == DATA_CSV) {
        if (tsv_is_dropped(&table->tsv, index)) return 0;
        result = tsv_row(&table->tsv, index, row, &error);
    } else if (table->format == DATA_PARQUET) result = parquet_row(table->parquet, (int64_t)index, row, &error);
    else if (table->format == DATA_ARROW) result = arrow_row(table->arrow, (int64_t)index, row, &error);
    else result = json_rows_read(&table->json, index, row, &error);
    if (result == VP_OK && (result = row_parse(row, &error)) != VP_OK)
        example_fail(example, "it is not JSON: %.300s at byte %lld", error.text, (long long)error.offset);
    if (result == VP_OK && !node_is(&row->parsed.json, 0, VP_JSON_OBJECT))
        result = vp_fail(&error, VP_ERR_FORMAT, -1, "", "expected a JSON object");
    if (result != VP_OK)
        example_fail(example, "%.600s", error.text[0] ? error.text : vp_result_text(result));
    else fill(table, row, index, example);
    return 1;
}
void table_put_record(vp_json_writer *writer, const struct table *table, const struct example *example) {
    static const char *const origins[] = {"none", "lmms_eval", "vlmevalkit"};
    struct text_buffer joined = {NULL, 0, 0};
    example_prompt(example, &joined);
    put_text(writer, "question", joined.data);
    example_put_places(writer, example);
    /* if the prompt is ready-made they are "choices": nothing adds them to it again */
    example_put_options(writer, example, table->origin != ORIGIN_NONE ? "choices" : "options");
    if (table->origin == ORIGIN_NONE && example->hint) put_text(writer, "hint", example->hint);
    example_put_answer(writer, example);
    if (example->metric) put_text(writer, "metric", example->metric);
    if (example->group) put_text(writer, "g_index", example->group);
    put_text(writer, "prompt_origin", origins[table->origin]);
    example_put_members(writer, example, "choices texts image_urls");
    free(joined.data);
}
