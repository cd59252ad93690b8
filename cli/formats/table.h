/* table.h: reads a data file of any known format as samples. The format is determined from the file's contents, never
 * only from its name. Rows can be read in any order; ascending order is fastest. */
#ifndef VLMPROF_CLI_TABLE_H
#define VLMPROF_CLI_TABLE_H
#include "formats/arrow.h"
#include "formats/example.h"
#include "formats/json_rows.h"
#include "formats/parquet.h"
#include "formats/tsv.h"

/* X(enumerator, name for --data_format, title) */
#define DATA_FORMATS(X) \
    X(VLMPROF, "vlmprof", "vlmprof JSONL") \
    X(VQA, "vqa", "VQA v2 or OK-VQA, questions and annotations") \
    X(TSV, "vlmevalkit", "VLMEvalKit TSV") \
    X(CSV, "csv", "CSV") \
    X(PARQUET, "parquet", "Parquet") \
    X(ARROW, "arrow", "Arrow, as datasets.save_to_disk writes it") \
    X(DOCVQA, "docvqa", "DocVQA JSON") \
    X(INFOVQA, "infovqa", "InfographicVQA JSON") \
    X(TEXTVQA, "textvqa", "TextVQA JSON") \
    X(CHARTQA, "chartqa", "ChartQA JSON") \
    X(POPE, "pope", "POPE JSONL") \
    X(OCRBENCH, "ocrbench", "OCRBench JSON") \
    X(MATHVISTA, "mathvista", "MathVista JSON") \
    X(TALLYQA, "tallyqa", "TallyQA JSON") \
    X(LLAVA, "llava", "LLaVA or ShareGPT4V conversations") \
    X(LLAVA_QUESTIONS, "llava_questions", "LLaVA evaluation questions") \
    X(OPENAI, "openai", "OpenAI messages JSONL") \
    X(AIPERF, "aiperf", "AIPerf JSONL") \
    X(VLLM, "vllm", "vLLM custom JSONL")
enum data_format {
#define DATA_FORMAT_ENUM(format, name, title) DATA_##format,
    DATA_FORMATS(DATA_FORMAT_ENUM)
#undef DATA_FORMAT_ENUM
    DATA_FORMAT_COUNT
};
const char *format_title(enum data_format format);

struct note_key { int64_t id; size_t record; };
int compare_notes(const void *left_item, const void *right_item); /* orders by id, for qsort */
struct table {
    char *path, *folder, *name, *stem; /* name: the last part of the path; stem: without its extension */
    enum data_format format;
    const struct task *task;           /* NULL if not a known set */
    const char *variant;               /* the name that identifies the split: --dataset_name, or the stem */
    enum prompt_origin origin;
    int is_origin_given;               /* 1 with --prompt_origin: the metric follows it */
    const char *image_dir;             /* NULL for the file's own folder */
    struct tsv tsv;
    struct parquet *parquet;
    struct arrow *arrow;
    struct json_rows json;
    struct json_rows notes;            /* DATA_VQA: annotations */
    struct note_key *note_keys; size_t note_count;
    char *notes_path;
    struct row note;                   /* the current annotation */
    size_t row_count;
};

struct table_wish { const char *format, *task, *origin, *image_dir, *annotations; }; /* options; NULL if not given */

/* v2_OpenEnded_mscoco_val2014_questions.json -> v2_mscoco_val2014_annotations.json, which the caller frees; NULL if the
 * name is not an official one, or the file is missing. */
char *find_annotations(const char *path);

/* Opens a file. Returns VP_OK, and the caller calls table_close. */
vp_result table_open(struct table *table, const char *path, const struct table_wish *wish, vp_error *error);
void table_close(struct table *table);

/* Reads a row into an example: pictures are named but not opened. If the row cannot be used, example->reason has the
 * reason. Returns 0 if the tool drops the row: it is not a sample. */
int table_example(struct table *table, size_t index, struct row *row, struct example *example);

/* Adds the Parquet files in a folder and its subfolders, by name (the Hub's cache, or a download). If there are none,
 * adds the Arrow files of datasets.save_to_disk. Returns 0 or an exit code after a message. */
int table_files(const char *folder, struct text_list *paths);

/* Writes an example into the open object as a line of our own with the same prompt, scoring rule and members; its id
 * and its pictures are the caller's. */
void table_put_record(vp_json_writer *writer, const struct table *table, const struct example *example);

/* The maximum answer length for this set in tokens, by lmms-eval; 0 if unknown. */
int32_t table_new_tokens(const struct table *table);

/* The columns of a text table, Parquet or Arrow; 0 if it has no columns. */
size_t table_column_count(const struct table *table);
const char *table_column_name(const struct table *table, size_t column);

/* The kind of file that the first bytes indicate, if no reader supports it: "a ZIP archive"; NULL if unknown. */
const char *foreign_format(const unsigned char *data, size_t bytes);

/* Why an "image" of our own lines cannot be a data URI. */
#define IMAGE_IS_INLINE \
    "its \"image\" is a data URI: write the picture to a file and its path here, or use OpenAI messages JSONL"
/* Returns 1 if a record of our own lines names its image under another key; the text names that key. */
int has_other_image_key(const vp_json *json, char *text, size_t capacity);

/* The path of VQA v2's annotations for an official questions file, which the caller frees; NULL if the name is not an
 * official one. */
char *annotations_path(const char *path);

/* ---- for the readers of the formats */
/* A text or a number under a key, malloc'ed; NULL if missing, null or something else. */
char *member_text(const vp_json *json, uint32_t object, const char *key);
void read_texts(const vp_json *json, uint32_t node, struct text_list *list); /* a list of texts, or one text */
void set_id(struct example *example, const vp_json *json, const char *key, size_t otherwise);
void add_path(struct example *example, char *path);                    /* a picture by its name, which is taken over */
void add_blobs(struct example *example, const vp_json *json, uint32_t node); /* one image, or a list of them */
/* If "answer" is an option by index, letter or text, this is multiple choice, and the answer is not a list. */
void settle_choice(const vp_json *json, struct example *example);
int names_part(const char *name, const char *part); /* 1 if `name` contains `part`, ignoring case */
int asks_itself(const struct table *table);         /* 1 if the prompt needs no question from the data */
/* The prompt of the origin: the task's form, or that of its variant: mathvista_testmini_cot, mmmu_pro_vision. */
enum prompt_form table_form(const struct table *table);
void set_default_metric(const struct table *table, struct example *example, enum prompt_origin family);
void read_tsv_row(const struct table *table, const struct row *row, size_t index, struct example *example);
void read_column_row(const struct table *table, const struct row *row, size_t index, struct example *example);
void read_json_row(struct table *table, struct row *row, size_t index, struct example *example);
void read_message_row(const struct table *table, struct row *row, size_t index, struct example *example);

/* Writes the columns of a row unchanged into the open object. A picture becomes its hash, bytes, size, format and path.
 * For tables of unknown sets. */
void put_columns(vp_json_writer *writer, const struct row *row);

/* The format of a JSON file by its first record; DATA_VLMPROF for our own. */
enum data_format json_format(const vp_json *json, enum json_shape shape, const char *key);
/* The set that the columns of a Parquet or Arrow file indicate. */
const struct task *column_task(const struct table *table);

#endif
