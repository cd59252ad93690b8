/* command_convert.c: converts a model, from a checkpoint folder or a preset, to a folder OUT. Everything is first
 * written into a staging folder inside OUT and then moved into place, config.json last: a folder without it is not a
 * model. The file CONVERTED lists the files that this command wrote, so that a later run replaces its own output and
 * nothing else. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "model/model.h"
#include "model/model_files.h"
#include "vlmprof.h"
#include "vlmprof_config.h"
#include "vlmprof_engine.h"
#include "vlmprof_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct option_spec CONVERT_OPTIONS[] = {
    OPTION_GROUP("input"),
    OPTION_SYNTHETIC,
    OPTION_SEED,
    {"mmproj", TEXT, "FILE", NULL, 0, 0, NULL, "GGUF file of the vision tower, if IN is a GGUF file",
     .excludes = "synthetic"},
    OPTION_GROUP("output"),
    {"layout", CHOICE, "FORM", "hf", 0, 0, "hf packed",
     "hf: bf16 safetensors, for any device and other programs; packed: memory-mapped by the CPU"},
    {"weights", CHOICE, "TYPE", "bf16", 0, 0, "bf16 int8 int4",
     "with packed: weights of the language model's blocks, as in run --weights"},
    OPTION_HEAD_WEIGHTS,
    OPTION_VISION_WEIGHTS,
    {"max_shard_mb", COUNT, "N", "5000", 1, 1000000, NULL, "with hf: maximum size of the tensors in a file, in MB"},
    OPTION_THREADS,
    {"json", FLAG, NULL, NULL, 0, 0, NULL,
     "a JSON object on stdout instead of the line on stderr: files, tensors, bytes of weights, seconds"},
    OPTIONS_OF_ALL,
};

#define CONVERTED "vlmprof_convert.json"
#define CONVERTING ".vlmprof-converting"
enum { SMALL_FILE_BYTES_MAX = 256 << 20 };

struct convert_job {
    const struct options *options;
    struct model model;
    const char *out; /* OUT */
    char *staging;   /* the folder CONVERTING in it */
    struct text_list old; /* files that an earlier convert wrote here */
    struct text_list written; /* files of this convert */
    int made_out;         /* 1 if the folder did not exist before */
    int packed;           /* 1 if --layout packed */
};

static void remove_staging(const char *staging) {
    struct text_list inside = {NULL, 0};
    if (is_folder(staging)) names_of_folder(staging, &inside);
    for (size_t i = 0; i < inside.count; i++) {
        char *path = join_path(staging, inside.items[i]);
        unlink(path);
        free(path);
    }
    text_list_free(&inside);
    rmdir(staging);
}

/* Returns 1 if the file is copied along with the weights: configuration, tokenizer, code, licence. */
static int is_small_file(const char *name) {
    static const char *const endings[] = {".json", ".txt", ".py", ".jinja", ".md"};
    const char *dot = strrchr(name, '.');
    if (name[0] == '.' || !strcmp(name, CONVERTED) || strstr(name, ".index.json")) return 0;
    if (!strncmp(name, "LICENSE", 7) || !strncmp(name, "NOTICE", 6)) return 1;
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++) if (!strcmp(dot, endings[i])) return 1;
    return 0;
}
/* A GGUF model has no other files; their contents are made from its metadata. */
static int write_gguf_files(const struct convert_job *job) {
    static const char *const names[] = {"config.json", "tokenizer.json", "preprocessor_config.json",
                                        "chat_template.jinja"};
    int code = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && !code; i++) {
        char *text = NULL;
        size_t bytes = 0;
        if (!model_files_has(&job->model.files, names[i])) continue;
        code = model_files_read(&job->model.files, names[i], &text, &bytes, NULL);
        if (!code) code = file_write_whole(job->staging, names[i], text, bytes);
        free(text);
    }
    return code;
}
static int copy_small_files(const struct convert_job *job) {
    struct text_list inside = {NULL, 0};
    int code = names_of_folder(job->model.name, &inside);
    for (size_t i = 0; i < inside.count && !code; i++) {
        char *path = join_path(job->model.name, inside.items[i]), *text = NULL;
        vp_error error = {VP_OK, -1, "", ""};
        struct stat info;
        size_t bytes = 0;
        if (is_small_file(inside.items[i]) && stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
            vp_result result = vp_file_read(path, SMALL_FILE_BYTES_MAX, &text, &bytes, &error);
            code = result == VP_OK ? file_write_whole(job->staging, inside.items[i], text, bytes)
                                   : complain_result(EXIT_INPUT, path, result, &error);
        }
        FREE_ALL(text, path);
    }
    text_list_free(&inside);
    return code;
}

/* ---- the files that a preset lacks: config.json, and tokenizer.json with a byte tokenizer */
static void put_preset_language(vp_json_writer *writer, const vp_model_config *config) {
    PUT(writer, KEY("d_model", config->d_model), KEY("n_heads", config->head_count),
        KEY("n_layers", config->block_count), KEY("moe_num_experts", config->expert_count),
        KEY("moe_top_k", config->top_k), KEY("mlp_hidden_size", 2 * (int64_t)config->expert_dim),
        KEY("vocab_size", config->vocab_size), KEY("embedding_size", config->embedding_size),
        KEY("additional_vocab_size", config->additional_vocab_size),
        KEY("max_sequence_length", config->max_sequence_length), KEY("max_position_embeddings", config->max_positions),
        KEY("rope_theta", config->rope_theta), KEY("layer_norm_eps", (double)config->norm_eps));
    put_pair(writer, "overlap_margins", config->geometry.margin_left_patches, config->geometry.margin_right_patches);
    put_int(writer, "max_crops", config->geometry.max_crops);
    put_ints(writer, "vit_layers", config->vit_layers, config->vit_layer_count);
}
static void put_preset_vision(vp_json_writer *writer, const vp_model_config *config) {
    PUT(writer, KEY_OBJECT("vision_backbone"), KEY("image_model_type", "openai"),
        KEY("image_mlp_activations", "quick_gelu"), KEY("resize_mode", "default"));
    put_pair(writer, "image_default_input_size", config->geometry.crop_px, config->geometry.crop_px);
    PUT(writer, KEY("image_patch_size", config->geometry.patch_px),
        KEY("image_pos_patch_size", config->geometry.patch_px), KEY("image_emb_dim", config->vit_width),
        KEY("image_num_heads", config->vit_head_count), KEY("image_num_key_value_heads", config->vit_head_count),
        KEY("image_head_dim", config->vit_head_dim), KEY("image_mlp_dim", config->vit_mlp_dim),
        KEY("image_num_layers", config->vit_block_count), KEY("image_num_pos", config->vit_positions),
        KEY("image_norm_eps", (double)config->vit_norm_eps), END_OBJECT);
}
static int write_preset_config(const struct convert_job *job) {
    static const char *const words[][2] = {{"model_type", "molmo"},
                                           {"block_type", "moe"},
                                           {"activation_type", "swiglu"},
                                           {"crop_mode", "overlap-and-resize-c2"},
                                           {"image_padding_embed", "pad_and_partial_pad"},
                                           {"image_pooling_2d", "attention-meanq"},
                                           {"image_projector", "mlp"},
                                           {"layer_norm_type", "rms"},
                                           {"rope_impl", "llama"}};
    static const char *const yes[] = {
        "attention_layer_norm", "attention_layer_norm_with_affine", "layer_norm_with_affine", "moe_dropless", "rope",
        "use_col_tokens"};
    static const char *const no[] = {
        "alibi",    "bias_for_layer_norm", "include_bias",  "norm_after",      "normalize_input_embeds",
        "qkv_bias", "scale_logits",        "unconditioned", "use_cls_feature", "weight_tying"};
    struct text_buffer text = {NULL, 0, 0};
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, &text, 2);
    PUT(&writer, KEY_OBJECT(NULL), KEY_ARRAY("architectures"), KEY(NULL, "OLMoForCausalLM"), END_ARRAY);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) put_text(&writer, words[i][0], words[i][1]);
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) put_bool(&writer, yes[i], 1);
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) put_bool(&writer, no[i], 0);
    PUT(&writer, KEY("fix_image_input_idx", 2), KEY("image_pooling_h", job->model.config.geometry.pool),
        KEY("image_pooling_w", job->model.config.geometry.pool));
    put_preset_language(&writer, &job->model.config);
    put_preset_vision(&writer, &job->model.config);
    vp_json_end_object(&writer);
    vp_json_finish(&writer);
    int code = file_write_whole(job->staging, "config.json", text.data, text.bytes);
    free(text.data);
    return code;
}

/* The character that represents a byte in GPT-2's alphabet, as UTF-8. */
static void alphabet_text(int byte, char out[4]) {
    int code = byte, others = 0;
    for (int each = 0; each <= byte; each++) {
        int shown = (each >= 33 && each <= 126) || (each >= 161 && each <= 172) || each >= 174;
        if (each == byte && !shown) code = 256 + others;
        others += !shown;
    }
    memset(out, 0, 4);
    if (code < 128) out[0] = (char)code;
    else {
        out[0] = (char)(unsigned char)(0xC0 | code >> 6);
        out[1] = (char)(unsigned char)(0x80 | (code & 63));
    }
}
static void put_byte_level(vp_json_writer *writer, const char *key) {
    PUT(writer, KEY_OBJECT(key), KEY("type", "ByteLevel"), KEY_BOOL("add_prefix_space", 0), KEY_BOOL("trim_offsets", 1),
        KEY_BOOL("use_regex", 1), END_OBJECT);
}
struct special_token { const char *content; int32_t id; };
static void put_special_tokens(vp_json_writer *writer, const struct special_token *specials, int count) {
    PUT(writer, KEY_ARRAY("added_tokens"));
    for (int i = 0; i < count; i++) {
        PUT(writer, KEY_OBJECT(NULL), KEY("id", specials[i].id), KEY("content", specials[i].content),
            KEY_BOOL("single_word", 0), KEY_BOOL("lstrip", 0), KEY_BOOL("rstrip", 0), KEY_BOOL("normalized", 0),
            KEY_BOOL("special", 1), END_OBJECT);
    }
    vp_json_end_array(writer);
}
static int write_preset_tokenizer(const struct convert_job *job) {
    const vp_special_ids *ids = &job->model.ids;
    const struct special_token specials[] = {{"<|padding|>", ids->pad},     {"<|endoftext|>", ids->eos},
                                             {"<im_start>", ids->im_start}, {"<im_end>", ids->im_end},
                                             {"<im_patch>", ids->im_patch}, {"<im_col>", ids->im_col},
                                             {"<|image|>", ids->image}};
    enum { SPECIALS = sizeof specials / sizeof specials[0] };
    struct text_buffer text = {NULL, 0, 0};
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, &text, 1);
    PUT(&writer, KEY_OBJECT(NULL), KEY("version", "1.0"), KEY_NULL("truncation"), KEY_NULL("padding"));
    put_special_tokens(&writer, specials, SPECIALS);
    put_null(&writer, "normalizer");
    put_byte_level(&writer, "pre_tokenizer");
    put_null(&writer, "post_processor");
    put_byte_level(&writer, "decoder");
    PUT(&writer, KEY_OBJECT("model"), KEY("type", "BPE"), KEY_OBJECT("vocab"));
    for (int byte = 0; byte < 256; byte++) {
        char character[4];
        alphabet_text(byte, character);
        put_int(&writer, character, byte + 2);
    }
    for (int i = 0; i < SPECIALS; i++) put_int(&writer, specials[i].content, specials[i].id);
    PUT(&writer, END_OBJECT, KEY_ARRAY("merges"), END_ARRAY, END_OBJECT, END_OBJECT);
    vp_json_finish(&writer);
    int code = file_write_whole(job->staging, "tokenizer.json", text.data, text.bytes);
    free(text.data);
    return code;
}

/* ---- the folder */
/* Reads the list of an earlier convert. Returns 1 if it exists and is well formed. */
static int can_read_converted(struct convert_job *job) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    char *path = join_path(job->out, CONVERTED), *text = NULL;
    size_t bytes = 0;
    int good = vp_file_read(path, 1 << 20, &text, &bytes, NULL) == VP_OK
               && parse_json(&parsed, text, bytes, NULL) == VP_OK && node_is(&parsed.json, 0, VP_JSON_OBJECT)
               && vp_json_equals(&parsed.json, vp_json_get(&parsed.json, 0, "schema"), "vlmprof-convert-1");
    uint32_t files = good ? vp_json_get(&parsed.json, 0, "files") : VP_JSON_NONE;
    good = good && node_is(&parsed.json, files, VP_JSON_ARRAY);
    for (uint32_t i = 0; good && i < parsed.nodes[files].count; i++) {
        char *name = node_text(&parsed.json, vp_json_at(&parsed.json, files, i));
        good = name && *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
        if (good) text_list_copy(&job->old, name);
        free(name);
    }
    if (!good) text_list_free(&job->old);
    FREE_ALL(parsed.nodes, text, path);
    return good;
}
/* Makes OUT and the staging folder. OUT must be new, empty, or the output of an earlier convert; the remains of a
 * killed convert are removed from staging. Returns 0 or an exit code. */
static int open_folder(struct convert_job *job) {
    struct text_list inside = {NULL, 0};
    struct stat in, out;
    int code = 0;
    if (stat(job->out, &out) == 0 && !job->model.synthetic && stat(job->model.name, &in) == 0 && in.st_dev == out.st_dev
        && in.st_ino == out.st_ino)
        return complain(EXIT_USAGE, "convert: IN and OUT are the same folder; choose another OUT");
    job->made_out = access(job->out, F_OK) != 0;
    if ((code = make_folder(job->out)) != 0) return code;
    remove_staging(job->staging);
    code = names_of_folder(job->out, &inside);
    if (!code && inside.count && !can_read_converted(job))
        code = complain(EXIT_USAGE,
                        "convert: %s is not empty and not the output of an earlier convert (%s ...): choose another "
                        "folder",
                        job->out, inside.items[0]);
    text_list_free(&inside);
    if (!code && mkdir(job->staging, 0777))
        code = complain(EXIT_OUTPUT, "%s: cannot create the folder: %s", job->staging, strerror(errno));
    return code;
}
/* Writes the list CONVERTED of all staged files. Returns 0 or an exit code. */
static int write_converted(const struct convert_job *job) {
    struct text_list inside = {NULL, 0};
    struct text_buffer text = {NULL, 0, 0};
    vp_json_writer writer;
    int code = names_of_folder(job->staging, &inside);
    vp_json_writer_init_sink(&writer, text_sink, &text, 2);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-convert-1"), KEY("version", VLMPROF_VERSION),
        KEY("layout", text_of(job->options, "layout")));
    for (int i = 0; i < PRECISIONS; i++)
        put_text(&writer, PRECISION_OPTIONS[i], text_of(job->options, PRECISION_OPTIONS[i]));
    PUT(&writer, KEY(job->model.synthetic ? "synthetic" : "source", job->model.name),
        KEY_KNOWN("seed", job->model.synthetic, number_of(job->options, "seed")), KEY_ARRAY("files"));
    for (size_t i = 0; i < inside.count; i++) json_lossy(&writer, inside.items[i]);
    PUT(&writer, END_ARRAY, END_OBJECT);
    vp_json_finish(&writer);
    if (!code) code = file_write_whole(job->staging, CONVERTED, text.data, text.bytes);
    free(text.data);
    text_list_free(&inside);
    return code;
}
static int write_weights(struct convert_job *job) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_convert_options settings = vp_convert_options_default();
    settings.config = &job->model.config;
    settings.checkpoint = job->model.checkpoint;
    settings.seed = (uint64_t)number_of(job->options, "seed");
    settings.directory = job->staging;
    settings.layout = job->packed ? VP_CONVERT_PACKED : VP_CONVERT_HF;
    settings.weights = weights_of(text_of(job->options, "weights"));
    settings.head_weights = weights_of(text_of(job->options, "head_weights"));
    settings.vision_weights = weights_of(text_of(job->options, "vision_weights"));
    settings.shard_bytes = (uint64_t)number_of(job->options, "max_shard_mb") * 1000000u;
    settings.threads = (int32_t)number_of(job->options, "threads");
    settings.progress = engine_progress;
    vp_result result = vp_engine_convert(&settings, &error);
    close_progress();
    if (result == VP_ERR_NOT_FOUND && job->model.files.gguf && !job->packed)
        return complain(EXIT_INPUT, "%s: %s: %s; a GGUF file omits tensors that are not needed for answers, but a "
                                    "folder of safetensors must have them all: use --layout packed", job->model.name,
                        error.where, error.text);
    return result == VP_OK ? 0 : complain_result(exit_code_of(result), job->out, result, &error);
}
static int move_file(const struct convert_job *job, const char *name) {
    char *from = join_path(job->staging, name), *to = join_path(job->out, name);
    int bad = rename(from, to) != 0;
    if (bad) complain(EXIT_OUTPUT, "%s cannot be written: %s; convert again", to, strerror(errno));
    FREE_ALL(from, to);
    return bad ? EXIT_OUTPUT : 0;
}
/* Complains if a staged file would replace a file that convert did not write. Returns 0 or an exit code. */
static int check_overwritten(const struct convert_job *job, const struct text_list *staged) {
    int code = 0;
    for (size_t i = 0; i < staged->count && !code; i++) {
        char *path = join_path(job->out, staged->items[i]);
        if (access(path, F_OK) == 0 && strcmp(staged->items[i], CONVERTED)
            && !text_list_has(&job->old, staged->items[i]))
            code = complain(EXIT_USAGE,
                            "convert: %s was not written by convert and would be overwritten: choose another folder",
                            path);
        free(path);
    }
    return code;
}
/* Syncs the new names in OUT to the disk. Returns 0 or an exit code. */
static int sync_names(const struct convert_job *job) {
    int error = vp_folder_sync(job->out);
    return error ? complain(EXIT_OUTPUT, "%s: the new files are not safely on disk: %s; convert again", job->out,
                            strerror(error))
                 : 0;
}
/* Removes the output of an earlier convert, config.json first. */
static void remove_old(const struct convert_job *job) {
    for (int config = 1; config >= 0; config--)
        for (size_t i = 0; i < job->old.count; i++) {
            if ((strcmp(job->old.items[i], "config.json") == 0) != config) continue;
            char *path = join_path(job->out, job->old.items[i]);
            unlink(path);
            free(path);
        }
}
/* Replaces the old files with the staged ones. The old config.json is removed first and the new one is moved last, so
 * that the folder never contains half a model. Files that convert did not write are kept. Returns 0 or an exit code. */
static int commit_folder(struct convert_job *job) {
    int code = names_of_folder(job->staging, &job->written);
    if (!code) code = check_overwritten(job, &job->written);
    if (!code) remove_old(job);
    if (!code) code = move_file(job, CONVERTED);
    for (size_t i = 0; i < job->written.count && !code; i++)
        if (strcmp(job->written.items[i], CONVERTED) && strcmp(job->written.items[i], "config.json"))
            code = move_file(job, job->written.items[i]);
    if (!code) code = sync_names(job);
    if (!code) code = move_file(job, "config.json");
    if (!code) code = sync_names(job);
    return code;
}

/* Reads the operands and opens the model. Returns 0 or an exit code. */
static int convert_inputs(struct convert_job *job) {
    const struct options *options = job->options;
    size_t wanted = is_given(options, "synthetic") ? 1 : 2;
    int code;
    if (options->operand_count != wanted)
        return complain(EXIT_USAGE, "convert needs %s; see vlmprof convert --help",
                        wanted == 1 ? "OUT (and no IN) with --synthetic NAME" : "IN and OUT");
    job->model.synthetic = wanted == 1;
    job->model.name = job->model.synthetic ? text_of(options, "synthetic") : options->operands[0];
    job->out = options->operands[wanted - 1];
    if (!*job->out) return complain(EXIT_USAGE, "convert: OUT is empty");
    job->packed = !strcmp(text_of(options, "layout"), "packed");
    for (int i = 0; i < PRECISIONS && !job->packed; i++)
        if (strcmp(text_of(options, PRECISION_OPTIONS[i]), "bf16") != 0)
            return complain(EXIT_USAGE, "--%s %s needs --layout packed: safetensors are written as bf16",
                            PRECISION_OPTIONS[i], text_of(options, PRECISION_OPTIONS[i]));
    job->staging = join_path(job->out, CONVERTING);
    job->model.projector = text_of(options, "mmproj");
    if (!job->model.synthetic && !is_folder(job->model.name) && !model_files_is_gguf(job->model.name))
        return model_complain_missing("", job->model.name);
    if ((code = job->model.synthetic ? model_load_preset(&job->model) : model_load_folder(&job->model)) != 0
        || (code = checkpoint_open(&job->model)) != 0)
        return code;
    if (job->model.synthetic && job->model.config.architecture != VP_ARCHITECTURE_MOLMOE)
        return complain(EXIT_USAGE,
                        "convert --synthetic accepts only molmoe-1b and tiny, because a folder of %s would lack its "
                        "config.json; use --synthetic %s with run, sweep or "
                        "selftest", job->model.name, job->model.name);
    if (is_packed(&job->model, NULL))
        return complain(EXIT_INPUT, "%s: the weights are already packed; give the folder that they were made from",
                        job->model.name);
    return 0;
}
/* Prints the written files as JSON. Returns 0 or an exit code. */
static int print_converted(const struct convert_job *job, const struct model *written, double seconds) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 1);
    PUT(&writer, KEY_OBJECT(NULL), KEY("output_dir", job->out), KEY("layout", text_of(job->options, "layout")));
    for (int i = 0; i < PRECISIONS; i++)
        put_text(&writer, PRECISION_OPTIONS[i], text_of(job->options, PRECISION_OPTIONS[i]));
    PUT(&writer, KEY("model", job->model.name), KEY_BOOL("synthetic", job->model.synthetic),
        KEY_KNOWN("seed", job->model.synthetic, number_of(job->options, "seed")), KEY_TEXTS("files", &job->written),
        KEY("tensors", vp_model_tensor_count(&job->model.config)), KEY("weight_files", written->file_count),
        KEY("weight_bytes", written->file_bytes), KEY("seconds", seconds), END_OBJECT);
    return json_end(&writer);
}
static int report_converted(const struct convert_job *job, int64_t since_ns) {
    int code;
    struct model written = {.name = job->out};
    if ((code = model_weigh_files(&written)) != 0) return code;
    double seconds = (double)(vp_clock_ns() - since_ns) / 1e9;
    if (is_given(job->options, "json")) return print_converted(job, &written, seconds);
    print_note("vlmprof: %s: %s, %.4g GB of weights in %lld file%s, %.1f s%s\n", job->out,
               text_of(job->options, "layout"), (double)written.file_bytes / 1e9, (long long)written.file_count,
               plural_s((int64_t)written.file_count), seconds, job->model.synthetic ? "; random weights" : "");
    return 0;
}
static void remove_unfinished(void *user) {
    const struct convert_job *job = user;
    remove_staging(job->staging);
    if (job->made_out) rmdir(job->out);
}
static int run_command(const struct options *options) {
    int64_t since_ns = vp_clock_ns();
    int code, opened = 0;
    struct unfinished unfinished;
    struct convert_job job = {.options = options};
    end_in_order(); /* so that a signal does not leave a staging folder */
    code = convert_inputs(&job);
    if (!code) code = open_folder(&job);
    opened = !code;
    unfinished_begin(&unfinished, remove_unfinished, &job);
    if (!code)
        code = job.model.synthetic ? write_preset_config(&job)
               : job.model.files.gguf ? write_gguf_files(&job) : copy_small_files(&job);
    if (!code && job.model.synthetic) code = write_preset_tokenizer(&job);
    if (!code) code = write_weights(&job);
    if (!code) code = write_converted(&job);
    if (!code && interrupted) code = complain(EXIT_INTERRUPTED, "convert: interrupted; nothing was changed");
    if (!code) code = commit_folder(&job);
    unfinished_end(&unfinished);
    if (opened) remove_staging(job.staging);
    if (code && job.made_out) rmdir(job.out); /* fails if it is not empty, as it should */
    if (!code) code = report_converted(&job, since_ns);
    text_list_free(&job.old);
    text_list_free(&job.written);
    free(job.staging);
    model_free(&job.model);
    return code;
}

const struct command command_convert = {
    "convert", "(IN | --synthetic NAME) OUT",
    "write a model as a bf16 folder, or packed for the CPU so that it opens immediately",
    "vlmprof convert checkpoint checkpoint-bf16\n"
    "  vlmprof convert checkpoint checkpoint-int4 --layout packed --weights int4",
    2, COMMAND_OPTIONS(CONVERT_OPTIONS), NULL, run_command};
