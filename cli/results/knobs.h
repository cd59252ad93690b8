/* knobs.h: what a configuration is made of, one row for each knob.
 * A sweep varies these, journals and result files name them, reports compare their values, `best` prints their options:
 * all of them loop over the rows below. A new knob is its row here and its apply function in measure/input.c. */
#ifndef VLMPROF_CLI_RESULTS_KNOBS_H
#define VLMPROF_CLI_RESULTS_KNOBS_H
#include "base/json.h"
#include "base/option_rows.h"
#include "vlmprof.h"

struct vp_model_config;

/* ROW(ID, key, words, (rows of sweep's options), (rows of run's options), apply function or no_apply, members of struct
 * knob). Key and words are those of JSON and CSV.
 * Those of the grid, whose points --sampling_strategy draws: image sizes are one dimension, each other knob is one. */
#define KNOB_GRID_ROWS(ROW) \
    ROW(TIER, "tier", "resolution tier", \
        ({"tier_list", TEXTS, "T...", NULL, 0, 0, NULL, \
          "tiers of the grid (default of Molmo's models, without another image size: all)", \
          .excludes = "vision_tokens_list"},), (), no_apply, \
        .null = "--vision_tokens_list, or a server got images unchanged", .type = KNOB_IS_TEXT, \
        .of = KNOB_OF_IMAGES, .axis = "image size", .axis_key = "image_size", \
        .always = KNOB_IN_ALL, .choices = "low medium high", .list = "tier_list", \
        .option = "tier") \
    ROW(TOKENS, "target_vision_tokens", "vision tokens that the configuration asks for", \
        ({"vision_tokens_list", COUNTS, "N...", NULL, 1, 1000000, NULL, \
          "target vision tokens of the grid, instead of tiers"},), (), no_apply, \
        .null = "a tier does, or a server got images unchanged", .type = KNOB_IS_NUMBER, \
        .of = KNOB_OF_IMAGES, .axis = "image size", \
        .always = KNOB_IN_ALL, .most_read = 1000000000, .list = "vision_tokens_list", .option = "vision_tokens") \
    ROW(IMAGE, "image_knob", "the model's own setting of image sizes that was varied: max_crops, longest_edge, ...", \
        (OPTION_IMAGE_KNOB("NAME=N,N..."),), (), no_apply, \
        .null = "none", \
        .number_key = "image_knob_value", .type = KNOB_IS_TEXT, .of = KNOB_OF_IMAGES, \
        .axis = "image size", .always = KNOB_IN_RESULTS, .least = 1, .most_read = INT32_MAX, .option = "image_knob") \
    ROW(TOP_K, "top_k", "experts that a token uses; 0: a model without experts", \
        ({"top_k_list", COUNTS, "K...", NULL, 1, 1000000, NULL, "experts a token uses (default: as trained)", \
          OF_ENGINE},), \
        ({"top_k", COUNT, "K", NULL, 1, 1000000, NULL, "experts a token uses (default: as trained)", OF_ENGINE},), \
        apply_top_k, \
        .null = "of a server", \
        .type = KNOB_IS_NUMBER, .of = KNOB_OF_ENGINE, .axis = "top_k", .axis_key = "top_k", \
        .always = KNOB_IN_ALL, .most_read = 1000000, .in_name = "topk", .in_setting = "k", .in_model = 1, \
        .list = "top_k_list", .option = "top_k", .in_config = offsetof(vp_model_config, top_k)) \
    ROW(BLOCKS, "num_active_blocks", "decoder blocks that run", \
        ({"num_active_blocks_list", COUNTS, "N...", NULL, 1, 1000000, NULL, \
          "decoder blocks that run (default: all)", OF_ENGINE},), \
        ({"num_active_blocks", COUNT, "N", NULL, 1, 1000000, NULL, \
          "decoder blocks that run: the first N, or by importance (default: all)", OF_ENGINE}, \
         {"active_blocks", COUNTS, "I,J,...", NULL, 0, 1000000, NULL, "decoder blocks that run, by index", \
          OF_ENGINE},), \
        apply_blocks, \
        .null = "of a server", \
        .list_key = "active_block_indices", .type = KNOB_IS_NUMBER, .of = KNOB_OF_ENGINE, \
        .axis = "blocks", .axis_key = "num_active_blocks", .always = KNOB_IN_ALL, .most_read = 1000000, \
        .in_name = "blocks", .in_setting = "b", .in_model = 1, \
        .list = "num_active_blocks_list", .option = "num_active_blocks", \
        .in_config = offsetof(vp_model_config, block_count))

/* Those with which each point of the grid is measured: with each value of the list, or as the model has it. */
#define KNOB_EACH_ROWS(ROW) \
    ROW(WEIGHTS, "weights", "of the language model's linears", \
        (OPTION_WEIGHTS, \
         {"weights_list", TEXTS, "TYPE...", NULL, 0, 0, NULL, \
          "weights of the grid, instead of --weights: every point runs with each of bf16, fp32, int8, int4, gguf; an " \
          "engine for each stays open", .excludes = "weights endpoint"},), \
        (OPTION_WEIGHTS,), no_apply, \
        .null = "of a server", \
        .type = KNOB_IS_TEXT, .of = KNOB_OF_ENGINE, .axis = "weights", .axis_key = "weights", \
        .always = KNOB_IN_RESULTS | KNOB_IN_REPORTS, .only_varied = 1, .choices = WEIGHTS_NAMES, .in_name = "weights", \
        .in_setting = "", .in_model = 1, .list = "weights_list", .option = "weights", .usual = "bf16") \
    ROW(HEAD_WEIGHTS, "head_weights", "of the output head", \
        (OPTION_HEAD_WEIGHTS,), (OPTION_HEAD_WEIGHTS,), no_apply, \
        .type = KNOB_IS_TEXT, .of = KNOB_OF_SWEEP, \
        .option = "head_weights", .usual = "bf16") \
    ROW(VISION_WEIGHTS, "vision_weights", "of the vision tower", \
        (OPTION_VISION_WEIGHTS,), (OPTION_VISION_WEIGHTS,), no_apply, \
        .type = KNOB_IS_TEXT, .of = KNOB_OF_SWEEP, \
        .option = "vision_weights", \
        .usual = "bf16") \
    ROW(PRUNE, "prune", "which image tokens go on, as --prune_list has it", \
        ({"prune_list", WHOLES, "VALUE...", NULL, 0, 0, NULL, \
          "image tokens left out: each point of the grid with each of none, random:keep=0.25, fastv:keep=112,layer=2 " \
          "... (vlmprof help pruning)", OF_ENGINE},), \
        ({"prune", TEXT, "VALUE", NULL, 0, 0, NULL, \
          "image tokens left out or merged: METHOD[:KEY=VALUE,..], such as fastv:keep=0.25,layer=2 (vlmprof help " \
          "pruning)", OF_ENGINE},), \
        apply_prune, \
        .type = KNOB_IS_TEXT, .of = KNOB_OF_ENGINE, .axis = "prune", .axis_key = "prune", \
        .only_varied = 1, .in_name = "prune-", .in_setting = "prune=", .in_model = 1, .list = "prune_list", \
        .option = "prune", .usual = "none")

/* Those of servers. Their options are a group of their own; data/variants.c reads them. */
#define KNOB_SERVER_ROWS(ROW) \
    ROW(ENDPOINT, "endpoint", "of a server: its base URL", \
        (), (), no_apply, \
        .type = KNOB_IS_TEXT, .of = KNOB_OF_SERVERS, \
        .axis = "variant", .axis_key = "variant") \
    ROW(ENDPOINT_MODEL, "endpoint_model", "of a server: its name of the model", \
        (), (), no_apply, \
        .type = KNOB_IS_TEXT, .of = KNOB_OF_SERVERS, \
        .axis = "variant") \
    ROW(REQUEST, "request_knobs", "of a server: members of the request's body that were set, path and value", \
        (), (), no_apply, \
        .type = KNOB_IS_OBJECT, .of = KNOB_OF_SERVERS, \
        .axis = "variant")

#define KNOB_ROWS(ROW) KNOB_GRID_ROWS(ROW) KNOB_EACH_ROWS(ROW) KNOB_SERVER_ROWS(ROW)
#define KNOB_ID(id, ...) KNOB_##id,
#define KNOB_UNPACK(...) __VA_ARGS__
#define KNOB_SWEEP_OPTIONS(id, key, words, sweep, run, apply, ...) KNOB_UNPACK sweep
#define KNOB_RUN_OPTIONS(id, key, words, sweep, run, apply, ...) KNOB_UNPACK run
enum { KNOB_MEMBERS_MAX = 256 }; /* members of a request that a journal may name */
enum knob_id { KNOB_ROWS(KNOB_ID) KNOB_COUNT };
enum { KNOB_EACH = KNOB_WEIGHTS, KNOB_EACH_END = KNOB_ENDPOINT }; /* KNOB_EACH_ROWS, after KNOB_GRID_ROWS */

/* A knob of images, of vlmprof's own engine, of all configurations of a sweep at once (its options say it), of
 * servers. */
enum knob_of { KNOB_OF_IMAGES, KNOB_OF_ENGINE, KNOB_OF_SWEEP, KNOB_OF_SERVERS };
enum knob_type { KNOB_IS_NUMBER, KNOB_IS_TEXT, KNOB_IS_OBJECT };

/* Where a knob is written whether it is set or not. */
enum { KNOB_IN_JOURNAL = 1, KNOB_IN_RESULTS = 2, KNOB_IN_REPORTS = 4, KNOB_IN_CSV = 8, KNOB_IN_ALL = 15 };

struct knob {
    const char *key;        /* in JSON and CSV */
    const char *words;      /* what it is, in the description of result files */
    const char *null;       /* why it may be null there; NULL: it is left out */
    const char *number_key; /* of a text that also has a number; NULL: none */
    const char *list_key;   /* of a number that counts a list; NULL: none */
    enum knob_type type;
    enum knob_of of;
    const char *axis;     /* what readers call it; neighbours with the same axis exclude each other. NULL: not varied */
    const char *axis_key; /* what programs call it: of the axis' first knob */
    int always;           /* KNOB_IN_... */
    int only_varied;      /* 1 if names and tables leave it out where all values are the same */
    int64_t least, most_read; /* of the number; most_read 0: INT32_MAX */
    const char *choices;    /* words of a text; NULL: any */
    const char *in_name;    /* before the value in a file's name, "topk4"; NULL: not in it */
    const char *in_setting; /* before the value in a table, "k4"; NULL: not in it */
    int in_model;           /* 1 if `fit` has a feature of it */
    const char *list;       /* sweep's option; NULL: others read it */
    const char *option;     /* run's option; NULL: others write it */
    const char *usual;      /* the value that needs no option; NULL: each needs it */
    size_t in_config;       /* the number that a model has without an option, in vp_model_config; 0: it has none */
};
extern const struct knob KNOBS[KNOB_COUNT];

/* A knob's value. What it has next to is_set is in its row. */
struct knob_value { int is_set; int64_t number; char *text; int32_t *list; int32_t list_count; };
/* A configuration: a value for each knob. Zeroed: none is set. It owns its texts and lists. */
struct knob_values {
    struct knob_value of[KNOB_COUNT];
    int64_t max_crops; /* that its images can have; 0: not known */
};

void knob_values_free(struct knob_values *values);
void knob_set_number(struct knob_values *values, int knob, int64_t number);
void knob_set_text(struct knob_values *values, int knob, const char *text); /* NULL: not set */
void knob_set_list(struct knob_values *values, int knob, const int32_t *list, int32_t count);
/* Sets it to what the model has without an option, if it has that. */
void knob_set_of_model(struct knob_values *values, int knob, const struct vp_model_config *config);

void knob_copy_servers(struct knob_values *values, const struct knob_values *from); /* the knobs of servers */

int knob_is_set(const struct knob_values *values, int knob);
const char *knob_text(const struct knob_values *values, int knob); /* NULL: not set */
int64_t knob_number(const struct knob_values *values, int knob);   /* 0: not set */
int64_t number_of_knob(const struct knob_values *values, int knob); /* -1: not set */
int knobs_are_served(const struct knob_values *values);            /* 1 if of a server */
int knobs_are_dense(const struct knob_values *values);             /* 1 if of a model without experts */
const vp_tier *knob_tier(const struct knob_values *values);        /* NULL: no tier, or an unknown one */

/* ---- axes: a knob, or several that exclude each other, called by the first of them */
enum { KNOB_SIZE = KNOB_TIER, KNOB_VARIANT = KNOB_ENDPOINT };
int knob_is_axis(int knob); /* 1 if the first knob of an axis */

/* Orders values: below 0, 0 or above 0. Image sizes go from small to large: tiers in their order, then unknown names,
 * then target tokens; values of a model's own setting among themselves. Weights go by their bits. Of
 * KNOB_VARIANT only the endpoints are compared. */
int knob_compare(int axis, const struct knob_values *left, const struct knob_values *right);
int64_t knob_size_rank(const struct knob_values *values);

/* Bits of a weight: 4, 8, 16 or 32; 0: NULL, 1: a type that is not known here. */
int weight_bits(const char *name);

/* Returns 1 if the same values of the engine's knobs: how many blocks run, not which. */
int knobs_of_engine_are_same(const struct knob_values *left, const struct knob_values *right);
/* Returns 1 if the same values of all knobs that a journal keeps. A weight that an old journal does not say fits
 * any. */
int knob_values_are_same(const struct knob_values *left, const struct knob_values *right);

/* ---- texts */
enum { KNOB_TEXT_BYTES = 144 };
/* "medium", "576 tokens", "max_crops 4"; "": none is set. Returns out. */
const char *knob_size_text(const struct knob_values *values, char out[KNOB_TEXT_BYTES]);
/* The values of the engine's knobs as tables have them, "k4 b12 int8"; told_apart: knobs whose values differ among the
 * configurations, as bits. Returns out. */
const char *knob_engine_text(const struct knob_values *values, uint32_t told_apart, char out[KNOB_TEXT_BYTES]);
/* A value as an axis names it: "4", "int8". Not of images and servers. */
const char *knob_value_text(const struct knob_values *values, int knob, char out[KNOB_TEXT_BYTES]);
/* Adds the parts of a file's name that say image size and engine's knobs. crops: the mean of a tier's; named: knobs
 * that are only named where they vary, as bits. */
void knob_add_name(struct text_buffer *name, const struct knob_values *values, int crops, uint32_t named);

/* ---- JSON */
/* Writes a knob's key with its value; null where it isn't set. `more`: also the keys of its number or list. */
void knob_put(vp_json_writer *writer, int knob, const struct knob_values *values);
void knob_put_more(vp_json_writer *writer, int knob, const struct knob_values *values);
/* {"endpoint", "endpoint_model", "request_knobs": {path: value}} as a value. */
void knob_put_variant(vp_json_writer *writer, const struct knob_values *values);
/* The members of a configuration in a plan: its knobs, or "variant" of a server. */
void knob_put_plan(vp_json_writer *writer, const struct knob_values *values);
/* The members of a configuration in a journal's head. */
void knob_put_journal(vp_json_writer *writer, const struct knob_values *values);
/* Returns 1 if the object is a configuration as knob_put_journal writes it, with `others` more members. block_count: of
 * the model; 0: a server runs it. */
int knob_is_journal(const vp_json *json, uint32_t object, uint32_t others, int64_t block_count);
/* Reads such an object, which was checked. options: the head's, for configurations that older versions wrote. */
void knob_read_journal(const vp_json *json, uint32_t object, uint32_t options, struct knob_values *values);

#endif
