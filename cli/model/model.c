/* model.c: a checkpoint's folder or a synthetic preset, and the engine that runs it. */
#include "model/model.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/options.h"
#include "vlmprof_file.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct model_rules *rules_of(const vp_model_config *config) {
    return config->architecture == VP_ARCHITECTURE_MOLMOE || config->architecture == VP_ARCHITECTURE_MOLMO
               ? &MOLMO_RULES
               : &HF_RULES;
}
int model_is_blind(const struct model *model) { return !model->config.vit_block_count; }
int check_image_count(const struct model *model, int32_t image_count) {
    const char *why = image_count > 1 ? model->rules->one_image(model) : NULL;
    return why ? complain(EXIT_USAGE, "%s: %d images, but only one is allowed: %s", model->name, image_count, why) : 0;
}
void cuts_free(struct cuts *cuts) {
    FREE_ALL(cuts->each, cuts->views);
    memset(cuts, 0, sizeof *cuts);
}
static void add_cut(struct cuts *cuts, const vp_layout *layout) {
    vp_layout *whole = &cuts->whole;
    whole->crops += layout->crops;
    whole->views += layout->views;
    whole->theoretical_tokens += layout->theoretical_tokens;
    whole->feature_tokens += layout->feature_tokens;
    whole->col_tokens += layout->col_tokens;
    whole->marker_tokens += layout->marker_tokens;
    whole->image_tokens += layout->image_tokens;
}
vp_result model_cut(const struct model *model, const struct image_size *size, const struct image_px *images,
                    int32_t count, struct cuts *cuts, vp_error *error) {
    vp_result result = VP_OK;
    cuts->each = resize(cuts->each, (size_t)count + 1, sizeof *cuts->each);
    cuts->views = resize(cuts->views, (size_t)count + 1, sizeof *cuts->views);
    memset(&cuts->whole, 0, sizeof cuts->whole);
    cuts->count = 0;
    for (int32_t i = 0; i < count && result == VP_OK; i++) {
        vp_layout *layout = &cuts->each[cuts->count++];
        memset(layout, 0, sizeof *layout);
        result = model->rules->cut(model, size, images[i].width_px, images[i].height_px, layout, error);
        cuts->views[i] = (vp_image_views){layout->views, layout->tiling.rows, layout->tiling.cols};
        if (count == 1) cuts->whole = *layout;
        else add_cut(cuts, layout);
    }
    return result;
}
void warn_of_template(const struct model *model) {
    if (model->prompt_note) complain(0, "%s: %s", model->name, model->prompt_note);
}
static void weigh_file(struct model *model, const char *path, const char *name) {
    struct stat info;
    if (stat(path, &info)) return;
    model->identity +=
        hash_number(hash_number(hash_text(HASH_START, name), (int64_t)info.st_size), (int64_t)info.st_mtime);
    model->file_bytes += (int64_t)info.st_size;
    model->file_count++;
}
/* Adds the weight files of the folder to identity, file_bytes and file_count. These are sums, so that the order of the
 * files does not matter. Returns 0 or an exit code. */
static int model_weigh_files(struct model *model) {
    struct text_list names = {NULL, 0};
    int code = names_of_folder(model->name, &names);
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.items[i], *dot = strrchr(name, '.');
        if (!dot || strcmp(dot, ".safetensors")) continue;
        char *path = join_path(model->name, name);
        weigh_file(model, path, name);
        free(path);
    }
    text_list_free(&names);
    return code;
}

int model_load_tokenizer(const char *json, size_t bytes, const char *what, vp_tokenizer **tokenizer) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = vp_tokenizer_load(json, bytes, tokenizer, &error);
    return result == VP_OK ? 0 : complain_result(exit_code_of(result), what, result, &error);
}

int tokenize_text(const struct model *model, const char *text, struct prompt_tokens *tokens) {
    size_t count = 0, bytes = strlen(text);
    tokens->ids = resize(NULL, bytes + 1, sizeof *tokens->ids); /* a byte makes at most one token ... */
    vp_result result = vp_tokenizer_encode(model->tokenizer, text, bytes, tokens->ids, bytes + 1, &count);
    if (result == VP_ERR_CAPACITY) { /* ... but normalisation can lengthen the text */
        tokens->ids = resize(tokens->ids, count, sizeof *tokens->ids);
        result = vp_tokenizer_encode(model->tokenizer, text, bytes, tokens->ids, count, &count);
    }
    if (result != VP_OK || count > INT32_MAX / 2)
        return complain(result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_USAGE, "the prompt cannot be tokenized: %s",
                        result != VP_OK ? vp_result_text(result) : "it is too long");
    tokens->count = (int32_t)count;
    tokens->ids = resize(tokens->ids, count, sizeof *tokens->ids); /* a data set has many prompts */
    return 0;
}

int model_load_preset(struct model *model) {
    vp_result result = vp_model_config_preset(model->name, &model->config);
    if (result == VP_ERR_NOT_FOUND) {
        struct text_buffer names = {NULL, 0, 0};
        for (int32_t i = 0; vp_model_preset_name(i); i++) {
            text_add_string(&names, i ? " " : "");
            text_add_string(&names, vp_model_preset_name(i));
        }
        int code = complain_word("synthetic", "preset", model->name, names.data);
        free(names.data);
        return code;
    }
    if (result != VP_OK)
        return complain(exit_code_of(result), "--synthetic %s: %s", model->name, vp_result_text(result));
    model->identity = hash_number(hash_text(HASH_START, model->name), VP_SYNTHETIC_VERSION);
    snprintf(model->class_name, sizeof model->class_name, "preset");
    model->rules = rules_of(&model->config);
    return model->rules->load_preset(model);
}

/* config.json's architectures[0], only for display */
static void read_class_name(struct model *model, const vp_json *config) {
    uint32_t list = vp_json_get(config, 0, "architectures");
    char *name = node_is(config, list, VP_JSON_ARRAY) && config->nodes[list].count
                     ? node_text(config, vp_json_at(config, list, 0))
                     : NULL;
    snprintf(model->class_name, sizeof model->class_name, "%s", name ? name : "not in config.json");
    free(name);
}

/* Reads the shape from the folder's files. *image receives the settings of the image processor; its text stays NULL if
 * the folder has none. */
static int settings_read(struct model *model, struct model_files *files, struct json_file *image) {
    vp_error error = {VP_OK, -1, "", ""};
    uint32_t node = 0;
    int code = model_files_read(model->name, 1, files, &model->identity);
    if (code) return code;
    const struct json_file *config = &files->file[MODEL_CONFIG];
    const vp_json *found = vp_image_settings(files->json, &node);
    vp_result result = VP_OK;
    if (found) {
        image->bytes = (size_t)found->nodes[node].bytes;
        image->text = copy_text(found->text + found->nodes[node].start, image->bytes);
        result = parse_json(&image->parsed, image->text, image->bytes, &error);
    }
    if (result == VP_OK)
        result = vp_model_config_parse(config->text, config->bytes, image->text, image->bytes, &model->config, &error);
    if (result == VP_OK && model->config.tied_head) model->config.tied_head = !vp_checkpoint_has_head(model->name);
    return result == VP_OK ? 0 : complain_result(EXIT_INPUT, model->name, result, &error);
}

/* Complains that a model's folder does not exist. For a name that looks like one on the Hugging Face Hub, gives the
 * command that downloads it. `option` is printed before the name. Returns EXIT_INPUT. */
static int model_complain_missing(const char *option, const char *name) {
    const char *slash = strchr(name, '/'), *reason = no_folder_reason(name);
    int like_hub = slash && slash != name && slash[1] && !strchr(slash + 1, '/') && name[0] != '.' && name[0] != '~';
    if (!like_hub || vp_path_kind(name) != VP_PATH_NONE) return complain(EXIT_INPUT, "%s%s: %s", option, name, reason);
    return complain(EXIT_INPUT,
                    "%s%s: no such folder; if this is a model on the Hugging Face Hub, download it first: hf download "
                    "%s --local-dir %s",
                    option, name, name, slash + 1);
}
int model_check_folder(const char *option, const char *name) {
    const size_t length = strlen(name);
    if (is_folder(name)) return 0;
    if (length > 5 && !strcmp(name + length - 5, ".gguf"))
        return complain(EXIT_INPUT,
                        "%s%s: GGUF files are no longer supported; convert it to a folder in Python: transformers' "
                        "from_pretrained(..., gguf_file=...), then save_pretrained", option, name);
    return model_complain_missing(option, name);
}
int model_load_folder(struct model *model) {
    struct model_files files = {0};
    struct json_file image = {0};
    char *tokenizer = NULL, *what;
    size_t tokenizer_bytes = 0;
    int code = model_check_folder("--model ", model->name);
    if (code) return code;
    model->identity = HASH_START;
    what = join_path(model->name, "tokenizer.json");
    code = settings_read(model, &files, &image);
    if (!code) code = file_read_in(model->name, "tokenizer.json", &tokenizer, &tokenizer_bytes, &model->identity);
    if (!code) code = model_load_tokenizer(tokenizer, tokenizer_bytes, what, &model->tokenizer);
    if (!code) {
        model->rules = rules_of(&model->config);
        code = model->rules->load(model, what, files.json[MODEL_CONFIG], image.text ? &image.parsed.json : NULL);
    }
    if (!code) read_class_name(model, files.json[MODEL_CONFIG]);
    if (!code) code = model_weigh_files(model);
    model_files_free(&files);
    FREE_ALL(image.text, image.parsed.nodes, tokenizer, what);
    return code;
}

void model_free(struct model *model) {
    FREE_ALL(model->prompt_front, model->prompt_note);
    if (model->checkpoint) vp_checkpoint_close(model->checkpoint);
    vp_tokenizer_free(model->tokenizer);
}
vp_result engine_progress(void *user, const char *what, int64_t done, int64_t total) {
    (void)user;
    if (interrupted) return VP_ERR_INTERRUPTED;
    show_progress("%s: %lld of %lld", what, (long long)done, (long long)total);
    return VP_OK;
}

vp_weights weights_of(const char *name) {
    return !strcmp(name, "fp32")   ? VP_WEIGHTS_FP32
           : !strcmp(name, "int8") ? VP_WEIGHTS_INT8
           : !strcmp(name, "int4") ? VP_WEIGHTS_INT4
                                   : VP_WEIGHTS_BF16;
}
vp_activations activations_of(const char *name) {
    int kind = 0;
    while (kind < VP_ACTIVATIONS_COUNT && strcmp(name, vp_activations_name((vp_activations)kind)) != 0) kind++;
    return (vp_activations)kind;
}
vp_engine_options engine_options_for(const vp_engine_options *settings, const struct model *model, int32_t max_sequence,
                                     int32_t max_views) {
    vp_engine_options own = *settings;
    own.config = &model->config;
    own.checkpoint = model->checkpoint;
    own.max_sequence = max_sequence;
    own.max_views = max_views;
    return own;
}
vp_result engine_begin(const vp_engine_options *settings, vp_engine **engine, vp_error *error) {
    vp_result result = vp_engine_open(settings, engine, error);
    const char *device = settings->device;
    if (result == VP_ERR_DEVICE && strcmp(device, "cpu"))
        vp_device_reset(!strncmp(device, "cuda:", 5) ? (int32_t)strtol(device + 5, NULL, 10) : 0, NULL);
    return result;
}
/* Opens the model's weights, unless they are open or synthetic. */
static vp_result weights_open(struct model *model, vp_error *error) {
    return model->synthetic || model->checkpoint
               ? VP_OK
               : vp_checkpoint_open(model->name, &model->config, &model->checkpoint, error);
}
int checkpoint_open(struct model *model) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = weights_open(model, &error);
    return result == VP_OK ? 0 : complain_result(exit_code_of(result), model->name, result, &error);
}
vp_result engine_try(const vp_engine_options *settings, struct model *model, int32_t max_sequence, int32_t max_views,
                     vp_engine **engine, vp_error *error) {
    vp_result result = weights_open(model, error);
    if (result != VP_OK) return result;
    const vp_engine_options own = engine_options_for(settings, model, max_sequence, max_views);
    result = engine_begin(&own, engine, error);
    close_progress();
    return result;
}
/* Reads {"block": score} into scores by block (NaN if none) and their order in the file. */
static int load_importance(const char *path, int32_t block_count, double *scores, int32_t *order) {
    vp_error error = {VP_OK, -1, "", ""};
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    char *text = NULL;
    size_t bytes = 0;
    int code = 0;
    vp_result result = vp_file_read(path, JSON_FILE_BYTES_MAX, &text, &bytes, &error);
    if (result == VP_OK) result = parse_json(&parsed, text, bytes, &error);
    if (result != VP_OK) code = complain_result(EXIT_INPUT, path, result, &error);
    else if (!node_is(&parsed.json, 0, VP_JSON_OBJECT))
        code = complain(EXIT_INPUT, "%s: expected one object {\"block\": score, ...}", path);
    else if (!parsed.json.nodes[0].count)
        code = complain(EXIT_INPUT, "%s has no score; expected {\"block\": score, ...} of the blocks 0..%d", path,
                        block_count - 1);
    for (int32_t block = 0; block < block_count; block++) { scores[block] = (double)NAN; order[block] = INT32_MAX; }
    for (uint32_t i = 1, member = 0; !code && member < parsed.json.nodes[0].count; member++) {
        char *key = node_text(&parsed.json, i);
        double score = node_number(&parsed.json, i + 1);
        int64_t block = -1;
        if (!key || !can_parse_number(key, &block) || block < 0 || block >= block_count)
            code = complain(EXIT_INPUT, "%s: \"%s\" is not a block of this model (0..%d)", path, key ? key : "",
                            block_count - 1);
        else if (order[block] != INT32_MAX)
            code = complain(EXIT_INPUT, "%s: block %lld is listed twice", path, (long long)block);
        else if (!isfinite(score))
            code = complain(EXIT_INPUT, "%s: the score of block %lld is not a finite number", path, (long long)block);
        else { scores[block] = score; order[block] = (int32_t)member; }
        free(key);
        i = parsed.json.nodes[i + 1].end;
    }
    FREE_ALL(parsed.nodes, text);
    return code;
}

/* Returns 1 if block `left` precedes block `right` by importance. Scores must not be NaN. */
static int block_before(const double *scores, const int32_t *file_order, int32_t left, int32_t right) {
    if (scores[left] != scores[right]) return scores[left] > scores[right];
    if (file_order && file_order[left] != file_order[right]) return file_order[left] < file_order[right];
    return left < right;
}

vp_result choose_active_blocks(int32_t block_count, int32_t active, const double *scores, const int32_t *file_order,
                               int32_t *blocks) {
    int32_t block, other, last, wanted, scored = 0, inner = 0;
    if (block_count < 1 || active < 1 || active > block_count) return VP_ERR_RANGE;
    last = block_count - 1;
    wanted = active - 2;
    for (block = 0; scores && block < block_count; block++) {
        if (!(scores[block] == scores[block])) continue;
        scored++;
        inner += block > 0 && block < last;
    }
    if (scored == 0) { /* an empty file counts as no file */
        for (block = 0; block < active; block++) blocks[block] = block;
        return VP_OK;
    }
    if (wanted > inner) return VP_ERR_MISMATCH;
    *blocks++ = 0;
    for (block = 1; block < last; block++) {
        int32_t before = 0;
        if (!(scores[block] == scores[block])) continue;
        for (other = 1; other < last; other++) {
            before += scores[other] == scores[other] && block_before(scores, file_order, other, block);
        }
        if (before < wanted) *blocks++ = block;
    }
    if (active > 1) *blocks = last;
    return VP_OK;
}

int model_choose_blocks(const char *path, const struct model *model, int32_t active, int32_t *blocks) {
    int32_t count = model->config.block_count;
    double *scores = resize(NULL, (size_t)count, sizeof *scores);
    int32_t *order = resize(NULL, (size_t)count, sizeof *order);
    int code = 0;
    if (active > count) code = complain(EXIT_USAGE, "num_active_blocks %d: the model has %d blocks", active, count);
    if (!code && path) code = load_importance(path, count, scores, order);
    if (!code) {
        vp_result result = choose_active_blocks(count, active, path ? scores : NULL, path ? order : NULL, blocks);
        if (result != VP_OK)
            code = complain(path ? EXIT_INPUT : EXIT_USAGE,
                            "%s: %d active blocks cannot be chosen (does every block have a score?): %s",
                            path ? path : "num_active_blocks", active, vp_result_text(result));
    }
    FREE_ALL(scores, order);
    return code;
}
