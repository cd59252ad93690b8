/* knobs.h: the knobs of a configuration, one row per knob.
 * A sweep varies them, journals and result files name them, reports compare their values, and `best` prints their
 * options. All this code loops over the rows below. A new knob of the engine needs a row here, with .in_knobs = 1, and,
 * in measure/input.c, a function in the table that sets it in a request (help library has an example). */
#ifndef VLMPROF_CLI_RESULTS_KNOBS_H
#define VLMPROF_CLI_RESULTS_KNOBS_H
#include "base/json.h"
#include "base/option_rows.h"

struct vp_model_config;

/* ROW(ID, key, words, (rows of sweep's options), (rows of run's options), members of struct knob). Key and words are
 * used in JSON and CSV.
 * First the knobs of the grid, whose points --sampling_strategy draws. Image sizes together are one dimension, every
 * other knob is another. */
#define KNOB_GRID_ROWS(ROW) \
    ROW(TIER, "tier", "resolution tier", \
        ({"tier_list", TEXTS, "T...", NULL, 0, 0, NULL, \
          "tiers in the grid (default: all, for Molmo models, unless another option sets the image size)", \
          .excludes = "vision_tokens_list"},), (), \
        .null = "--vision_tokens_list, or a server got images unchanged", .type = KNOB_IS_TEXT, \
        .of = KNOB_OF_IMAGES, .axis = "image size", .axis_key = "image_size", \
        .always = KNOB_IN_ALL, .choices = "low medium high", .list = "tier_list", \
        .option = "tier") \
    ROW(TOKENS, "target_vision_tokens", "vision tokens that the configuration requests", \
        ({"vision_tokens_list", COUNTS, "N...", NULL, 1, 1000000, NULL, \
          "target vision tokens in the grid, instead of tiers"},), (), \
        .null = "a tier is set, or a server got images unchanged", .type = KNOB_IS_NUMBER, \
        .of = KNOB_OF_IMAGES, .axis = "image size", \
        .always = KNOB_IN_ALL, .most_read = 1000000000, .list = "vision_tokens_list", .option = "vision_tokens") \
    ROW(IMAGE, "image_knob", "the model's own image size setting that was varied: max_crops, longest_edge, ...", \
        (OPTION_IMAGE_KNOB("NAME=N,N..."),), (), \
        .null = "none", \
        .number_key = "image_knob_value", .type = KNOB_IS_TEXT, .of = KNOB_OF_IMAGES, \
        .axis = "image size", .always = KNOB_IN_RESULTS, .least = 1, .most_read = INT32_MAX, .option = "image_knob") \
    ROW(TOP_K, "top_k", "experts per token; 0: a model without experts", \
        ({"top_k_list", COUNTS, "K...", NULL, 1, 1000000, NULL, "experts per token (default: as trained)", \
          OF_ENGINE},), \
        ({"top_k", COUNT, "K", NULL, 1, 1000000, NULL, "experts per token (default: as trained)", OF_ENGINE},), \
        .null = "not known for a server", \
        .type = KNOB_IS_NUMBER, .of = KNOB_OF_ENGINE, .axis = "top_k", .axis_key = "top_k", \
        .always = KNOB_IN_ALL, .most_read = 1000000, .in_name = "topk", .in_setting = "k", .in_model = 1, \
        .list = "top_k_list", .option = "top_k", .in_config = offsetof(vp_model_config, top_k)) \
    ROW(BLOCKS, "num_active_blocks", "decoder blocks that run", \
        ({"num_active_blocks_list", COUNTS, "N...", NULL, 1, 1000000, NULL, \
          "decoder blocks that run: the first N, or by importance (default: all)", OF_ENGINE},), \
        ({"num_active_blocks", COUNT, "N", NULL, 1, 1000000, NULL, \
          "decoder blocks that run: the first N, or by importance (default: all)", OF_ENGINE}, \
         {"active_blocks", COUNTS, "I,J,...", NULL, 0, 1000000, NULL, "decoder blocks that run, by index", \
          OF_ENGINE},), \
        .null = "not known for a server", \
        .list_key = "active_block_indices", .type = KNOB_IS_NUMBER, .of = KNOB_OF_ENGINE, \
        .axis = "blocks", .axis_key = "num_active_blocks", .always = KNOB_IN_ALL, .most_read = 1000000, \
        .in_name = "blocks", .in_setting = "b", .in_model = 1, \
        .list = "num_active_blocks_list", .option = "num_active_blocks", \
        .in_config = offsetof(vp_model_config, block_count))

/* The knobs that multiply the grid: each point is measured with each value of the list, or with the model's own. */
#define KNOB_EACH_ROWS(ROW) \
    ROW(WEIGHTS, "weights", "weight type of the language model's linear layers", \
        (OPTION_WEIGHTS, \
         {"weights_list", TEXTS, "TYPE...", NULL, 0, 0, NULL, \
          "weight types in the grid, instead of --weights: every point runs with each of these (bf16, fp32, int8, " \
          "int4); one engine per value stays open", .excludes = "weights endpoint"},), \
        (OPTION_WEIGHTS,), \
        .null = "not known for a server", \
        .type = KNOB_IS_TEXT, .of = KNOB_OF_ENGINE, .axis = "weights", .axis_key = "weights", \
        .always = KNOB_IN_RESULTS | KNOB_IN_REPORTS, .only_varied = 1, .choices = WEIGHTS_NAMES, .in_name = "weights", \
        .in_setting = "", .in_model = 1, .list = "weights_list", .option = "weights", .usual = "bf16") \
    ROW(HEAD_WEIGHTS, "head_weights", "weight type of the output head", \
        (OPTION_HEAD_WEIGHTS,), (OPTION_HEAD_WEIGHTS,), \
        .type = KNOB_IS_TEXT, .of = KNOB_OF_SWEEP, \
        .option = "head_weights", .usual = "bf16") \
    ROW(VISION_WEIGHTS, "vision_weights", "weight type of the vision tower", \
        (OPTION_VISION_WEIGHTS,), (OPTION_VISION_WEIGHTS,), \
        .type = KNOB_IS_TEXT, .of = KNOB_OF_SWEEP, \
        .option = "vision_weights", \
        .usual = "bf16") \
    ROW(ACTIVATIONS, "activations", "--activations: activation type for int8 and int4 weights in prefill and vision", \
        (OPTION_ACTIVATIONS(TEXTS, "KIND...", NULL, NULL, "; every point of the grid runs with each of these"),), \
        (OPTION_ACTIVATIONS(CHOICE, "KIND", "auto", ACTIVATIONS_NAMES, ""),), \
        .type = KNOB_IS_TEXT, .of = KNOB_OF_ENGINE, .axis = "activations", .axis_key = "activations", \
        .only_varied = 1, .choices = ACTIVATIONS_NAMES, .in_name = "activations-", .in_setting = "activations=", \
        .list = "activations", .option = "activations", .usual = "auto") \
    ROW(PRUNE, "prune", "how image tokens are pruned, as in --prune_list", \
        ({"prune_list", WHOLE_TEXTS, "VALUE...", NULL, 0, 0, NULL, \
          "image token pruning: every point of the grid runs with each of these (none, random:keep=0.25, " \
          "fastv:keep=112,layer=2, ...; vlmprof help pruning)", OF_ENGINE},), \
        ({"prune", TEXT, "VALUE", NULL, 0, 0, NULL, \
          "prune or merge image tokens: METHOD[:KEY=VALUE,..], such as fastv:keep=0.25,layer=2 (vlmprof help " \
          "pruning)", OF_ENGINE},), \
        .type = KNOB_IS_TEXT, .of = KNOB_OF_ENGINE, .axis = "prune", .axis_key = "prune", \
        .only_varied = 1, .in_name = "prune-", .in_setting = "prune=", .in_model = 1, .list = "prune_list", \
        .option = "prune", .usual = "none")

/* The knobs of servers. Their options are a separate group; data/variants.c reads them. */
#define KNOB_SERVER_ROWS(ROW) \
    ROW(ENDPOINT, "endpoint", "server only: base URL", \
        (), (), \
        .type = KNOB_IS_TEXT, .of = KNOB_OF_SERVERS, .axis = "endpoint", .axis_key = "endpoint", \
        .only_varied = 1, .in_setting = "") \
    ROW(ENDPOINT_MODEL, "endpoint_model", "server only: the server's name for the model", \
        (), (), \
        .type = KNOB_IS_TEXT, .of = KNOB_OF_SERVERS, .axis = "model", .axis_key = "endpoint_model", \
        .only_varied = 1, .in_setting = "") \
    ROW(REQUEST, "request_knobs", "server only: fields of the request body that were set, with path and value", \
        (), (), \
        .type = KNOB_IS_JSON, .of = KNOB_OF_SERVERS)

/* The load on a server. Files have it in "knobs"; data/variants.c reads the options. */
#define KNOB_LOAD_ROWS(ROW) \
    ROW(RATE, "request_rate", "server only: requests per second in an open loop", \
        ({"request_rate_list", TEXTS, "R...", NULL, 0, 0, NULL, \
          "requests per second, sent when they are due (open loop); each configuration is measured at each rate", \
          .needs = "endpoint", .excludes = "concurrency_list twins baseline stop_half_width"},), (), \
        .unit = "requests/s", .type = KNOB_IS_JSON, .axis = "request_rate", .axis_key = "request_rate", \
        .in_knobs = 1, .in_name = "rate", .in_setting = "rate=") \
    ROW(CONCURRENCY, "concurrency", "server only: requests in flight in a closed loop", \
        ({"concurrency_list", COUNTS, "N...", NULL, 1, 10000, NULL, \
          "requests in flight at all times (closed loop); each configuration is measured at each concurrency", \
          .needs = "endpoint", .excludes = "twins baseline stop_half_width"},), (), \
        .type = KNOB_IS_JSON, .axis = "concurrency", .axis_key = "concurrency", \
        .in_knobs = 1, .in_name = "conc", .in_setting = "conc=")

#define KNOB_ROWS(ROW) KNOB_GRID_ROWS(ROW) KNOB_EACH_ROWS(ROW) KNOB_SERVER_ROWS(ROW) KNOB_LOAD_ROWS(ROW)
#define KNOB_ID(id, ...) KNOB_##id,
#define KNOB_UNPACK(...) __VA_ARGS__
#define KNOB_SWEEP_OPTIONS(id, key, words, sweep, run, ...) KNOB_UNPACK sweep
#define KNOB_RUN_OPTIONS(id, key, words, sweep, run, ...) KNOB_UNPACK run
enum { KNOB_MEMBERS_MAX = 256 }; /* most members of a request in a journal */
enum { KNOB_OWN_MOST = 16 };     /* the last rows: knobs that files bring, in the order in which they were first seen */
enum knob_id { KNOB_ROWS(KNOB_ID) KNOB_OWN, KNOB_COUNT = KNOB_OWN + KNOB_OWN_MOST };
enum { KNOB_EACH = KNOB_WEIGHTS, KNOB_EACH_END = KNOB_ENDPOINT }; /* KNOB_EACH_ROWS, after KNOB_GRID_ROWS */

/* The scope of a knob: a file's own, images, vlmprof's own engine, a whole sweep (set by an option of the sweep), or
 * servers. */
enum knob_of { KNOB_OF_FILES, KNOB_OF_IMAGES, KNOB_OF_ENGINE, KNOB_OF_SWEEP, KNOB_OF_SERVERS };
enum knob_type { KNOB_IS_NUMBER, KNOB_IS_TEXT, KNOB_IS_JSON };

/* The outputs in which a knob is written even if it is not set. */
enum { KNOB_IN_JOURNAL = 1, KNOB_IN_RESULTS = 2, KNOB_IN_REPORTS = 4, KNOB_IN_CSV = 8, KNOB_IN_ALL = 15 };

struct knob {
    const char *key;        /* key in JSON and CSV */
    const char *words;      /* description in the schema of result files */
    const char *null;       /* why it may be null there; NULL: it is omitted instead */
    const char *unit;       /* of a file's own number; NULL: none */
    const char *number_key; /* key of the number, for a text that also has one */
    const char *list_key;   /* key of the list, for a number that counts one */
    enum knob_type type;
    enum knob_of of;
    const char *axis;     /* name in reports; only one of the neighbours with the same axis is set. NULL: not varied */
    const char *axis_key; /* name in JSON, only of the first knob of an axis */
    int always;           /* KNOB_IN_... */
    int only_varied;      /* 1 if names and tables omit it when all values are equal */
    int in_knobs;         /* 1 if files have it in "knobs": a program without this row then reads it as a file's own */
    int64_t least, most_read; /* limits of the number; most_read 0: INT32_MAX */
    const char *choices;    /* allowed texts; NULL: any */
    const char *in_name;    /* prefix of the value in file names, "topk4"; NULL: omitted */
    const char *in_setting; /* prefix of the value in tables, "k4"; NULL: omitted */
    int in_model;           /* 1 if `fit` has a feature for it */
    const char *list;       /* sweep's option; NULL: read by other code */
    const char *option;     /* run's option; NULL: written by other code */
    const char *usual;      /* the value that needs no option; NULL: every value needs it */
    size_t in_config;       /* offset in vp_model_config of the model's own number; 0: no such number */
};
extern const struct knob *const KNOBS; /* [KNOB_COUNT]; unused rows of files have no key */

/* The row of a file's own knob, which is made at first sight; -1: there are KNOB_OWN_MOST others. Its value is JSON: a
 * number, a text, true or false. unit: NULL if the file does not say it. Not for several threads at once. */
int knob_own(const char *name, const char *unit);
/* Returns 1 for such a row, and for a row of ours that files have in "knobs". */
int knob_is_own(int knob);
/* Frees those rows, before a process reads results that have nothing to do with the earlier ones. */
void knob_own_forget(void);

/* A knob's value. The type in its row decides which members are used. */
struct knob_value { int is_set; int64_t number; char *text; int32_t *list; int32_t list_count; };
/* A configuration: a value for each knob. If zeroed, no knob is set. It owns its texts and lists. */
struct knob_values {
    struct knob_value of[KNOB_COUNT];
    int64_t max_crops; /* most crops of an image; 0: not known */
};

void knob_values_free(struct knob_values *values);
void knob_set_number(struct knob_values *values, int knob, int64_t number);
void knob_set_text(struct knob_values *values, int knob, const char *text); /* NULL: not set */
void knob_set_list(struct knob_values *values, int knob, const int32_t *list, int32_t count);
/* Sets the knob to the model's own value, if the model has one. */
void knob_set_of_model(struct knob_values *values, int knob, const struct vp_model_config *config);

/* Copies the knobs of servers, their load and a file's own. */
void knob_copy_servers(struct knob_values *values, const struct knob_values *from);

/* Reduces a policy's knobs to the values that both have; is_first: copies them. Server knobs are always set: if they
 * differ, a text becomes "several", and a request {}. */
void knob_keep_common(struct knob_values *values, const struct knob_values *of, int is_first);

int knob_is_set(const struct knob_values *values, int knob);
const char *knob_text(const struct knob_values *values, int knob); /* NULL: not set */
int64_t knob_number(const struct knob_values *values, int knob);   /* 0: not set */
int64_t number_of_knob(const struct knob_values *values, int knob); /* -1: not set */
int knobs_are_served(const struct knob_values *values);            /* 1 for a server */
int knobs_are_loaded(const struct knob_values *values);            /* 1 if several requests were in flight at once */
int knobs_are_dense(const struct knob_values *values);             /* 1 for a model without experts */
const vp_tier *knob_tier(const struct knob_values *values);        /* NULL: no tier, or an unknown one */

/* ---- axes: a knob, or several of which only one is set; the first one identifies the axis */
enum { KNOB_SIZE = KNOB_TIER };
int knob_is_axis(int knob); /* 1 if the first knob of an axis */

/* Compares two values: returns below 0, 0 or above 0. Image sizes ascend: tiers, then unknown names, then target
 * tokens; values of a model's own setting are compared with each other. Weights are ordered by bits, a file's own
 * values as numbers, and the others in the order of first sight. */
int knob_compare(int axis, const struct knob_values *left, const struct knob_values *right);
int64_t knob_size_rank(const struct knob_values *values);

/* Returns the bits of a weight, 4, 8, 16 or 32; 0 for NULL, 1 for an unknown type. */
int weight_bits(const char *name);

/* Returns 1 if the engine's knobs have equal values. Of the blocks that run, only the number is compared. */
int knobs_of_engine_are_same(const struct knob_values *left, const struct knob_values *right);
/* Returns 1 if all knobs that a journal stores have equal values. A weight that an old journal lacks equals any. */
int knob_values_are_same(const struct knob_values *left, const struct knob_values *right);

/* ---- texts */
enum { KNOB_TEXT_BYTES = 144 };
/* "medium", "576 tokens", "max_crops 4"; "" if no size is set. Returns out. */
const char *knob_size_text(const struct knob_values *values, char out[KNOB_TEXT_BYTES]);
/* The values of the knobs but images for a table, "k4 b12 int8 attn=sdpa". varied: bits of the knobs whose values
 * differ among the configurations. Returns out. */
const char *knob_language_text(const struct knob_values *values, uint32_t varied, char out[KNOB_TEXT_BYTES]);
/* A value's name on an axis: "4", "int8", "sdpa". Not for images. */
const char *knob_value_text(const struct knob_values *values, int knob, char out[KNOB_TEXT_BYTES]);
/* The value of an own knob as JSON, as in "knobs"; NULL: not set. Returns out or the value's text. */
const char *knob_own_json(const struct knob_values *values, int knob, char out[KNOB_TEXT_BYTES]);
/* Adds the image size and the engine's knobs to a file name. crops: a tier's mean crops; named: bits of the
 * only_varied knobs that are added. */
void knob_add_name(struct text_buffer *name, const struct knob_values *values, int crops, uint32_t named);
int knob_is_file_name(const char *name); /* 1 if a result file of vlmprof can have this name */

/* ---- JSON */
/* Writes a knob's key and value, null if it is not set. knob_put_more also writes the keys of its number or list. */
void knob_put(vp_json_writer *writer, int knob, const struct knob_values *values);
void knob_put_more(vp_json_writer *writer, int knob, const struct knob_values *values);
/* Writes the member "knobs" with the file's own knobs and the rows with in_knobs, if any is set. */
void knob_put_own(vp_json_writer *writer, const struct knob_values *values);
/* Writes the value {"endpoint", "endpoint_model", "request_knobs": {path: value}}. */
void knob_put_variant(vp_json_writer *writer, const struct knob_values *values);
/* Writes the members of a configuration in a plan: its knobs, or a server's "variant". */
void knob_put_plan(vp_json_writer *writer, const struct knob_values *values);
/* Writes the members of a configuration in a journal's head. */
void knob_put_journal(vp_json_writer *writer, const struct knob_values *values);
/* Returns 1 if the object is a configuration as knob_put_journal writes it, with `others` more members. block_count:
 * the model's blocks; 0 for a server. */
int knob_is_journal(const vp_json *json, uint32_t object, uint32_t others, int64_t block_count);
/* Reads such an object, which must already be checked. options: the head's, for configurations of older versions. */
void knob_read_journal(const vp_json *json, uint32_t object, uint32_t options, struct knob_values *values);

#endif
