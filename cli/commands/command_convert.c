/* command_convert.c: a model in another form.
 * Everything is written into a folder of its own inside OUT and moved out at the end, config.json last: a folder
 * without it is no model. What this command wrote is listed in CONVERTED, so that it replaces its own output and
 * nobody else's. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "request/model.h"
#include "vlmprof.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"
#include "vlmprof_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const option_spec CONVERT_OPTIONS[] = {
    OPTION_SYNTHETIC,
    {"layout", CHOICE, "FORM", "hf", 0, 0, "hf packed",
     "hf: bf16 safetensors, for any device and other programs; packed: what the CPU maps as it is, bf16 only"},
    {"max_shard_mb", COUNT, "N", "5000", 1, 1000000, NULL, "hf: most MB of tensors in one file"},
    OPTION_SEED,
    OPTION_THREADS,
    OPTION_HELP,
};

#define CONVERTED "vlmprof_convert.json"
#define CONVERTING ".vlmprof-converting"
enum { SMALL_FILE_BYTES_MAX = 256 << 20 };

typedef struct convert_job {
    const options *o;
    model m;
    const char *out;
    char *staging;
    text_list old;    /* what an earlier convert wrote here */
    int made_out; /* the folder was not there before */
    int packed;
} convert_job;

static int write_small(const char *folder, const char *name, const char *data, size_t bytes) {
    char *path = join_path(folder, name);
    FILE *f = fopen(path, "wb");
    int bad = !f;
    if (f) {
        bad = bytes && fwrite(data, 1, bytes, f) != bytes;
        bad |= fflush(f) != 0 || fsync(fileno(f)) != 0;
        bad |= fclose(f) != 0;
    }
    if (bad) complain(EXIT_OUTPUT, "%s cannot be written: %s", path, strerror(errno));
    free(path);
    return bad ? EXIT_OUTPUT : 0;
}
static void remove_staging(const char *staging) {
    text_list inside = {NULL, 0};
    names_of_folder(staging, &inside);
    for (size_t i = 0; i < inside.count; i++) {
        char *path = join_path(staging, inside.items[i]);
        unlink(path);
        free(path);
    }
    text_list_free(&inside);
    rmdir(staging);
}

/* Files beside the weights that a model needs or that others read: configuration, tokenizer, code, licence. */
static int is_small_file(const char *name) {
    static const char *const endings[] = {".json", ".txt", ".py", ".jinja", ".md"};
    const char *dot = strrchr(name, '.');
    if (name[0] == '.' || !strcmp(name, CONVERTED) || strstr(name, ".index.json")) return 0;
    if (!strncmp(name, "LICENSE", 7) || !strncmp(name, "NOTICE", 6)) return 1;
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++) if (!strcmp(dot, endings[i])) return 1;
    return 0;
}
static int copy_small_files(const convert_job *j) {
    text_list inside = {NULL, 0};
    int code = 0;
    names_of_folder(j->m.name, &inside);
    for (size_t i = 0; i < inside.count && !code; i++) {
        char *path = join_path(j->m.name, inside.items[i]), *text = NULL;
        vp_error error = {VP_OK, -1, "", ""};
        struct stat info;
        size_t bytes = 0;
        if (is_small_file(inside.items[i]) && stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
            vp_result r = vp_file_read(path, SMALL_FILE_BYTES_MAX, &text, &bytes, &error);
            code = r == VP_OK ? write_small(j->staging, inside.items[i], text, bytes) : complain_result(EXIT_INPUT, path, r, &error);
        }
        free(text);
        free(path);
    }
    text_list_free(&inside);
    return code;
}

/* ---- what a preset lacks: its config.json and the byte tokenizer as a tokenizer.json */
static void put_preset_language(vp_json_writer *w, const vp_model_config *c) {
    put_int(w, "d_model", c->d_model);
    put_int(w, "n_heads", c->head_count);
    put_int(w, "n_layers", c->block_count);
    put_int(w, "moe_num_experts", c->expert_count);
    put_int(w, "moe_top_k", c->top_k);
    put_int(w, "mlp_hidden_size", 2 * (int64_t)c->expert_dim);
    put_int(w, "vocab_size", c->vocab_size);
    put_int(w, "embedding_size", c->embedding_size);
    put_int(w, "additional_vocab_size", c->additional_vocab_size);
    put_int(w, "max_sequence_length", c->max_sequence_length);
    put_int(w, "max_position_embeddings", c->max_positions);
    put_double(w, "rope_theta", c->rope_theta);
    put_double(w, "layer_norm_eps", (double)c->norm_eps);
    put_pair(w, "overlap_margins", c->geometry.margin_left_patches, c->geometry.margin_right_patches);
    put_int(w, "max_crops", c->geometry.max_crops);
    put_ints(w, "vit_layers", c->vit_layers, c->vit_layer_count);
}
static void put_preset_vision(vp_json_writer *w, const vp_model_config *c) {
    vp_json_key(w, "vision_backbone");
    vp_json_begin_object(w);
    put_text(w, "image_model_type", "openai");
    put_text(w, "image_mlp_activations", "quick_gelu");
    put_text(w, "resize_mode", "default");
    put_pair(w, "image_default_input_size", c->geometry.crop_px, c->geometry.crop_px);
    put_int(w, "image_patch_size", c->geometry.patch_px);
    put_int(w, "image_pos_patch_size", c->geometry.patch_px);
    put_int(w, "image_emb_dim", c->vit_width);
    put_int(w, "image_num_heads", c->vit_head_count);
    put_int(w, "image_num_key_value_heads", c->vit_head_count);
    put_int(w, "image_head_dim", c->vit_head_dim);
    put_int(w, "image_mlp_dim", c->vit_mlp_dim);
    put_int(w, "image_num_layers", c->vit_block_count);
    put_int(w, "image_num_pos", c->vit_positions);
    put_double(w, "image_norm_eps", (double)c->vit_norm_eps);
    vp_json_end_object(w);
}
static int write_preset_config(const convert_job *j) {
    static const char *const words[][2] = {
        {"model_type", "molmo"}, {"block_type", "moe"}, {"activation_type", "swiglu"}, {"crop_mode", "overlap-and-resize-c2"},
        {"image_padding_embed", "pad_and_partial_pad"}, {"image_pooling_2d", "attention-meanq"}, {"image_projector", "mlp"},
        {"layer_norm_type", "rms"}, {"rope_impl", "llama"}};
    static const char *const yes[] = {"attention_layer_norm", "attention_layer_norm_with_affine", "layer_norm_with_affine", "moe_dropless", "rope",
                                      "use_col_tokens"};
    static const char *const no[] = {"alibi", "bias_for_layer_norm", "include_bias", "norm_after", "normalize_input_embeds", "qkv_bias",
                                     "scale_logits", "unconditioned", "use_cls_feature", "weight_tying"};
    text_buffer text = {NULL, 0, 0};
    vp_json_writer w;
    int code;
    vp_json_writer_init_sink(&w, text_sink, &text, 2);
    vp_json_begin_object(&w);
    vp_json_key(&w, "architectures");
    vp_json_begin_array(&w);
    vp_json_string(&w, "OLMoForCausalLM");
    vp_json_end_array(&w);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) put_text(&w, words[i][0], words[i][1]);
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) put_bool(&w, yes[i], 1);
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) put_bool(&w, no[i], 0);
    put_int(&w, "fix_image_input_idx", 2);
    put_int(&w, "image_pooling_h", j->m.config.geometry.pool);
    put_int(&w, "image_pooling_w", j->m.config.geometry.pool);
    put_preset_language(&w, &j->m.config);
    put_preset_vision(&w, &j->m.config);
    vp_json_end_object(&w);
    vp_json_finish(&w);
    code = write_small(j->staging, "config.json", text.data, text.bytes);
    free(text.data);
    return code;
}

/* the character that stands for a byte in GPT-2's alphabet */
static void alphabet_text(int byte, char out[4]) {
    int code = byte, others = 0;
    for (int b = 0; b <= byte; b++) {
        int shown = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        if (b == byte && !shown) code = 256 + others;
        others += !shown;
    }
    memset(out, 0, 4);
    if (code < 128) out[0] = (char)code;
    else {
        out[0] = (char)(unsigned char)(0xC0 | code >> 6);
        out[1] = (char)(unsigned char)(0x80 | (code & 63));
    }
}
static void put_byte_level(vp_json_writer *w, const char *key) {
    vp_json_key(w, key);
    vp_json_begin_object(w);
    put_text(w, "type", "ByteLevel");
    put_bool(w, "add_prefix_space", 0);
    put_bool(w, "trim_offsets", 1);
    put_bool(w, "use_regex", 1);
    vp_json_end_object(w);
}
typedef struct special_token { const char *content; int32_t id; } special_token;
static void put_special_tokens(vp_json_writer *w, const special_token *specials, int count) {
    vp_json_key(w, "added_tokens");
    vp_json_begin_array(w);
    for (int i = 0; i < count; i++) {
        vp_json_begin_object(w);
        put_int(w, "id", specials[i].id);
        put_text(w, "content", specials[i].content);
        put_bool(w, "single_word", 0);
        put_bool(w, "lstrip", 0);
        put_bool(w, "rstrip", 0);
        put_bool(w, "normalized", 0);
        put_bool(w, "special", 1);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static int write_preset_tokenizer(const convert_job *j) {
    const vp_special_ids *ids = &j->m.ids;
    const special_token specials[] = {
        {"<|padding|>", ids->pad}, {"<|endoftext|>", ids->eos}, {"<im_start>", ids->im_start}, {"<im_end>", ids->im_end},
        {"<im_patch>", ids->im_patch}, {"<im_col>", ids->im_col}, {"<|image|>", ids->image}};
    enum { SPECIALS = sizeof specials / sizeof specials[0] };
    text_buffer text = {NULL, 0, 0};
    vp_json_writer w;
    int code;
    vp_json_writer_init_sink(&w, text_sink, &text, 1);
    vp_json_begin_object(&w);
    put_text(&w, "version", "1.0");
    put_null(&w, "truncation");
    put_null(&w, "padding");
    put_special_tokens(&w, specials, SPECIALS);
    put_null(&w, "normalizer");
    put_byte_level(&w, "pre_tokenizer");
    put_null(&w, "post_processor");
    put_byte_level(&w, "decoder");
    vp_json_key(&w, "model");
    vp_json_begin_object(&w);
    put_text(&w, "type", "BPE");
    vp_json_key(&w, "vocab");
    vp_json_begin_object(&w);
    for (int b = 0; b < 256; b++) {
        char character[4];
        alphabet_text(b, character);
        put_int(&w, character, b + 2);
    }
    for (int i = 0; i < SPECIALS; i++) put_int(&w, specials[i].content, specials[i].id);
    vp_json_end_object(&w);
    vp_json_key(&w, "merges");
    vp_json_begin_array(&w);
    vp_json_end_array(&w);
    vp_json_end_object(&w);
    vp_json_end_object(&w);
    vp_json_finish(&w);
    code = write_small(j->staging, "tokenizer.json", text.data, text.bytes);
    free(text.data);
    return code;
}

/* ---- the folder */
/* reads the list of an earlier convert; 0: there is none, or it is none of ours */
static int read_converted(convert_job *j) {
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    char *path = join_path(j->out, CONVERTED), *text = NULL;
    size_t bytes = 0;
    int good = vp_file_read(path, 1 << 20, &text, &bytes, NULL) == VP_OK && parse_json(&p, text, bytes, NULL) == VP_OK
               && node_is(&p.json, 0, VP_JSON_OBJECT) && vp_json_equals(&p.json, vp_json_get(&p.json, 0, "schema"), "vlmprof-convert-1");
    uint32_t files = good ? vp_json_get(&p.json, 0, "files") : VP_JSON_NONE;
    good = good && node_is(&p.json, files, VP_JSON_ARRAY);
    for (uint32_t i = 0; good && i < p.nodes[files].count; i++) {
        char *name = node_text(&p.json, vp_json_at(&p.json, files, i));
        good = name && *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
        if (good) text_list_copy(&j->old, name);
        free(name);
    }
    if (!good) text_list_free(&j->old);
    free(p.nodes);
    free(text);
    free(path);
    return good;
}
/* OUT is new, empty, or of an earlier convert; a killed one's remains are swept away */
static int open_folder(convert_job *j) {
    text_list inside = {NULL, 0};
    struct stat in, out;
    int code = 0;
    if (stat(j->out, &out) == 0 && !j->m.synthetic && stat(j->m.name, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return complain(EXIT_USAGE, "convert: IN and OUT are the same folder; give OUT another name");
    j->made_out = access(j->out, F_OK) != 0;
    if ((code = make_folder(j->out)) != 0) return code;
    remove_staging(j->staging);
    names_of_folder(j->out, &inside);
    if (inside.count && !read_converted(j))
        code = complain(EXIT_USAGE, "convert: %s is not empty and not an earlier output of convert (%s ...): choose another folder", j->out,
                        inside.items[0]);
    text_list_free(&inside);
    if (!code && mkdir(j->staging, 0777)) code = complain(EXIT_OUTPUT, "%s: the folder cannot be made: %s", j->staging, strerror(errno));
    return code;
}
static int write_converted(const convert_job *j) {
    text_list inside = {NULL, 0};
    text_buffer text = {NULL, 0, 0};
    vp_json_writer w;
    int code;
    names_of_folder(j->staging, &inside);
    vp_json_writer_init_sink(&w, text_sink, &text, 2);
    vp_json_begin_object(&w);
    put_text(&w, "schema", "vlmprof-convert-1");
    put_text(&w, "version", VLMPROF_VERSION);
    put_text(&w, "layout", text_of(j->o, "layout"));
    put_text(&w, j->m.synthetic ? "synthetic" : "source", j->m.name);
    vp_json_key(&w, "seed");
    if (j->m.synthetic) vp_json_int(&w, number_of(j->o, "seed")); else vp_json_null(&w);
    vp_json_key(&w, "files");
    vp_json_begin_array(&w);
    for (size_t i = 0; i < inside.count; i++) json_lossy(&w, inside.items[i]);
    vp_json_end_array(&w);
    vp_json_end_object(&w);
    vp_json_finish(&w);
    code = write_small(j->staging, CONVERTED, text.data, text.bytes);
    free(text.data);
    text_list_free(&inside);
    return code;
}
static int write_weights(convert_job *j) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_convert_options c = vp_convert_options_default();
    vp_result r;
    c.config = &j->m.config;
    c.checkpoint = j->m.checkpoint;
    c.seed = (uint64_t)number_of(j->o, "seed");
    c.directory = j->staging;
    c.layout = j->packed ? VP_CONVERT_PACKED : VP_CONVERT_HF;
    c.shard_bytes = (uint64_t)number_of(j->o, "max_shard_mb") * 1000000u;
    c.threads = (int32_t)number_of(j->o, "threads");
    c.progress = engine_progress;
    r = vp_engine_convert(&c, &error);
    close_progress();
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), j->out, r, &error);
}
static int move_file(const convert_job *j, const char *name) {
    char *from = join_path(j->staging, name), *to = join_path(j->out, name);
    int bad = rename(from, to) != 0;
    if (bad) complain(EXIT_OUTPUT, "%s cannot be written: %s; convert again", to, strerror(errno));
    free(from);
    free(to);
    return bad ? EXIT_OUTPUT : 0;
}
/* From here on nothing is half: first the old config.json goes, last the new one comes. What stands beside the list of an earlier convert stays. */
static int commit_folder(convert_job *j) {
    text_list inside = {NULL, 0};
    char *path;
    int code = 0;
    names_of_folder(j->staging, &inside);
    for (size_t i = 0; i < inside.count && !code; i++) {
        path = join_path(j->out, inside.items[i]);
        if (access(path, F_OK) == 0 && strcmp(inside.items[i], CONVERTED) && !text_list_has(&j->old, inside.items[i]))
            code = complain(EXIT_USAGE, "convert: %s is not of an earlier convert and would be overwritten: choose another folder", path);
        free(path);
    }
    for (int config = 1; config >= 0 && !code; config--)
        for (size_t i = 0; i < j->old.count; i++) {
            if ((strcmp(j->old.items[i], "config.json") == 0) != config) continue;
            path = join_path(j->out, j->old.items[i]);
            unlink(path);
            free(path);
        }
    if (!code) code = move_file(j, CONVERTED);
    for (size_t i = 0; i < inside.count && !code; i++)
        if (strcmp(inside.items[i], CONVERTED) && strcmp(inside.items[i], "config.json")) code = move_file(j, inside.items[i]);
    sync_folder(j->out);
    if (!code) code = move_file(j, "config.json");
    text_list_free(&inside);
    return code;
}

static int convert_inputs(convert_job *j) {
    const options *o = j->o;
    size_t wanted = given(o, "synthetic") ? 1 : 2;
    int code;
    if (o->operand_count != wanted)
        return complain(EXIT_USAGE, "convert needs %s; see vlmprof convert --help",
                        wanted == 1 ? "OUT (and no IN) with --synthetic NAME" : "IN and OUT");
    j->m.synthetic = wanted == 1;
    j->m.name = j->m.synthetic ? text_of(o, "synthetic") : o->operands[0];
    j->out = o->operands[wanted - 1];
    if (!*j->out) return complain(EXIT_USAGE, "convert: OUT is empty");
    j->packed = !strcmp(text_of(o, "layout"), "packed");
    j->staging = join_path(j->out, CONVERTING);
    if (!j->m.synthetic && !is_folder(j->m.name)) return complain(EXIT_INPUT, "%s: no such folder", j->m.name);
    if ((code = j->m.synthetic ? model_load_preset(&j->m) : model_load_folder(&j->m)) != 0 || (code = checkpoint_open(&j->m)) != 0) return code;
    if (is_packed(&j->m)) return complain(EXIT_INPUT, "%s: the weights are packed already; give the folder they were made of", j->m.name);
    return 0;
}
static void report_converted(const convert_job *j, int64_t since_ns) {
    model written;
    memset(&written, 0, sizeof written);
    written.name = j->out;
    model_weigh_files(&written);
    fprintf(stderr, "vlmprof: %s: %s, %.4g GB of weights in %lld file%s, %.1f s%s\n", j->out, text_of(j->o, "layout"),
            (double)written.file_bytes / 1e9, (long long)written.file_count, written.file_count == 1 ? "" : "s",
            (double)(vp_clock_ns() - since_ns) / 1e9, j->m.synthetic ? "; random weights" : "");
}
static int run_command(const options *o) {
    int64_t since_ns = vp_clock_ns();
    int code, opened = 0;
    convert_job j;
    memset(&j, 0, sizeof j);
    j.o = o;
    end_in_order(); /* a signal lets the temporary files go first */
    code = convert_inputs(&j);
    if (!code) code = open_folder(&j);
    opened = !code;
    if (!code) code = j.m.synthetic ? write_preset_config(&j) : copy_small_files(&j);
    if (!code && j.m.synthetic) code = write_preset_tokenizer(&j);
    if (!code) code = write_weights(&j);
    if (!code) code = write_converted(&j);
    if (!code && interrupted) code = complain(EXIT_INTERRUPTED, "convert: interrupted; nothing was changed");
    if (!code) code = commit_folder(&j);
    if (opened) remove_staging(j.staging);
    sync_folder(j.out ? j.out : ".");
    if (code && j.made_out) rmdir(j.out); /* when it is empty */
    if (!code) report_converted(&j, since_ns);
    text_list_free(&j.old);
    free(j.staging);
    model_free(&j.m);
    return code;
}

const command command_convert = {
    "convert", "(IN | --synthetic NAME) OUT",
    "write a model as a bf16 folder, or packed for the CPU so that it opens at once",
    "vlmprof convert checkpoint checkpoint-bf16\n  vlmprof convert checkpoint checkpoint-packed --layout packed",
    2, CONVERT_OPTIONS, sizeof CONVERT_OPTIONS / sizeof *CONVERT_OPTIONS, NULL, run_command};
