/* model.c: a checkpoint's folder or a synthetic preset, and the engine that runs it. */
#include "request/model.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "vlmprof_file.h"
#include "vlmprof_stages.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void model_weigh_files(model *m) {
    DIR *d = opendir(m->name);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        const char *dot = strrchr(e->d_name, '.');
        struct stat info;
        char *path;
        if (strcmp(e->d_name, VP_PACKED_FILE) && (!dot || strcmp(dot, ".safetensors"))) continue;
        path = join_path(m->name, e->d_name);
        if (stat(path, &info) == 0) {
            m->identity += hash_number(hash_number(hash_text(HASH_START, e->d_name), (int64_t)info.st_size), (int64_t)info.st_mtime);
            m->file_bytes += (int64_t)info.st_size;
            m->file_count++;
        }
        free(path);
    }
    if (d) closedir(d);
}

int model_load_tokenizer(const char *json, size_t bytes, const char *what, vp_tokenizer **tokenizer) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = vp_tokenizer_load(json, bytes, tokenizer, &error);
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), what, r, &error);
}

int model_load_preset(model *m) {
    vp_result r = vp_model_config_preset(m->name, &m->config);
    if (r != VP_OK) return complain(EXIT_USAGE, "--synthetic: \"%s\" is no preset; there are: tiny, molmoe-1b", m->name);
    r = vp_model_preset_ids(m->name, &m->ids);
    if (r == VP_OK) r = vp_tokenizer_bytes(&m->ids, &m->tokenizer);
    m->identity = hash_text(HASH_START, m->name);
    snprintf(m->architecture, sizeof m->architecture, "MolmoE preset");
    return r == VP_OK ? 0 : complain(exit_code_of(r), "--synthetic %s: %s", m->name, vp_result_text(r));
}

/* special ids stand at the end of the vocabulary: where they have embedding rows, the text's tokens have */
static int check_ids(const model *m, const char *what) {
    const int32_t ids[] = {m->ids.bos, m->ids.im_start, m->ids.im_end, m->ids.im_patch, m->ids.im_col};
    int32_t rows = m->config.embedding_size + m->config.additional_vocab_size;
    for (int i = 0; i < 5; i++)
        if (ids[i] >= rows) return complain(EXIT_INPUT, "%s: token %d has no embedding: config.json has %d rows", what, ids[i], rows);
    return 0;
}

/* config.json's architectures[0]: only to be shown */
static void read_architecture(model *m, const char *config, size_t bytes) {
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    uint32_t list = parse_json(&p, config, bytes, NULL) == VP_OK ? vp_json_get(&p.json, 0, "architectures") : VP_JSON_NONE;
    char *name = node_is(&p.json, list, VP_JSON_ARRAY) && p.nodes[list].count ? node_text(&p.json, vp_json_at(&p.json, list, 0)) : NULL;
    snprintf(m->architecture, sizeof m->architecture, "%s", name ? name : "not named in config.json");
    free(name);
    free(p.nodes);
}

static int is_original(const char *folder) { /* as OLMo's training code leaves a checkpoint */
    char *yaml = join_path(folder, "config.yaml"), *json = join_path(folder, "config.json");
    int original = access(yaml, F_OK) == 0 && access(json, F_OK) != 0;
    free(yaml);
    free(json);
    return original;
}
int model_load_folder(model *m) {
    char *config = NULL, *preprocessor = NULL, *tokenizer = NULL;
    char *path = join_path(m->name, "preprocessor_config.json"), *what = join_path(m->name, "tokenizer.json");
    size_t config_bytes = 0, preprocessor_bytes = 0, tokenizer_bytes = 0;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r;
    int code;
    m->identity = HASH_START;
    if (!is_folder(m->name)) code = complain(EXIT_INPUT, "--model %s: no such folder", m->name);
    else if (is_original(m->name))
        code = complain(EXIT_INPUT, "%s: this is OLMo's original training format (config.yaml, no config.json), whose tensors have other names and "
                        "shapes: convert it to the Hugging Face format with the model's own script first", m->name);
    else code = file_read_in(m->name, "config.json", &config, &config_bytes, &m->identity);
    if (!code && access(path, F_OK) == 0) code = file_read_in(m->name, "preprocessor_config.json", &preprocessor, &preprocessor_bytes, &m->identity);
    if (!code && (r = vp_model_config_parse(config, config_bytes, preprocessor, preprocessor_bytes, &m->config, &error)) != VP_OK)
        code = complain_result(EXIT_INPUT, m->name, r, &error);
    if (!code) code = file_read_in(m->name, "tokenizer.json", &tokenizer, &tokenizer_bytes, &m->identity);
    if (!code) code = model_load_tokenizer(tokenizer, tokenizer_bytes, what, &m->tokenizer);
    if (!code && (r = vp_tokenizer_special_ids(m->tokenizer, &m->ids, &error)) != VP_OK) code = complain_result(EXIT_INPUT, what, r, &error);
    if (!code) code = check_ids(m, what);
    if (!code) read_architecture(m, config, config_bytes);
    model_weigh_files(m);
    free(config);
    free(preprocessor);
    free(tokenizer);
    free(path);
    free(what);
    return code;
}

int check_device(const options *o) {
    const char *device = text_of(o, "device");
    vp_error error = {VP_OK, -1, "", ""};
    vp_device_info gpu;
    int64_t index = 0;
    vp_result r;
    if (!strcmp(device, "auto") || !strcmp(device, "cpu")) return 0;
    if (strcmp(device, "cuda") && (strncmp(device, "cuda:", 5) || device[5] == '-' || !parse_number(device + 5, &index) || index > INT32_MAX))
        return complain(EXIT_USAGE, "--device: \"%s\" is none of auto, cpu, cuda, cuda:N", device);
    r = vp_device_describe((int32_t)index, &gpu, &error);
    return r == VP_OK ? 0 : complain(exit_code_of(r), "--device %s: %s", device, error.text[0] ? error.text : vp_result_text(r));
}
int check_gemm(const options *o) {
    const char *gemm = text_of(o, "gemm");
    char names[256] = "auto";
    for (int32_t i = 0; vp_engine_gemm_name(i); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, " %s", vp_engine_gemm_name(i));
    }
    return has_word(names, gemm) ? 0 : complain(EXIT_USAGE, "--gemm: this processor has no \"%s\"; it has: %s", gemm, names);
}

int model_load(const options *o, model *m) {
    memset(m, 0, sizeof *m);
    if (given(o, "model") + given(o, "synthetic") > 1 || (!given(o, "model") && !text_of(o, "synthetic")))
        return complain(EXIT_USAGE, "%s needs one of --model DIR and --synthetic NAME", o->command->name);
    m->synthetic = !given(o, "model");
    m->name = text_of(o, m->synthetic ? "synthetic" : "model");
    return m->synthetic ? model_load_preset(m) : model_load_folder(m);
}
void model_free(model *m) {
    if (m->checkpoint) vp_checkpoint_close(m->checkpoint);
    vp_tokenizer_free(m->tokenizer);
}
vp_result engine_progress(void *user, const char *what, int64_t done, int64_t total) {
    (void)user;
    if (interrupted) return VP_ERR_INTERRUPTED;
    show_progress("%s: %lld of %lld", what, (long long)done, (long long)total);
    return VP_OK;
}

int checkpoint_open(model *m) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = m->synthetic || m->checkpoint ? VP_OK : vp_checkpoint_open(m->name, &m->config, &m->checkpoint, &error);
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), m->name, r, &error);
}
int is_packed(const model *m) {
    vp_packed packed;
    return m->checkpoint && vp_checkpoint_packed(m->checkpoint, &packed) == VP_OK;
}
vp_engine_options engine_options_of(const options *o, const model *m, int32_t max_sequence, int32_t max_views) {
    vp_engine_options e = vp_engine_options_default();
    e.config = &m->config;
    e.checkpoint = m->checkpoint;
    e.seed = (uint64_t)number_of(o, "seed");
    e.device = text_of(o, "device");
    e.threads = (int32_t)number_of(o, "threads");
    e.max_sequence = max_sequence;
    e.max_views = max_views;
    e.progress = engine_progress;
    return e;
}
vp_result engine_try(const options *o, model *m, const char *device, int32_t max_sequence, int32_t max_views, vp_engine **engine,
                     vp_error *error) {
    vp_engine_options e;
    vp_result r = m->synthetic || m->checkpoint ? VP_OK : vp_checkpoint_open(m->name, &m->config, &m->checkpoint, error);
    if (r != VP_OK) return r;
    e = engine_options_of(o, m, max_sequence, max_views);
    e.weights = strcmp(text_of(o, "weights"), "fp32") ? VP_WEIGHTS_BF16 : VP_WEIGHTS_FP32;
    e.gemm = text_of(o, "gemm");
    e.device = device;
    r = vp_engine_open(&e, engine, error);
    close_progress();
    return r;
}
int engine_open(const options *o, model *m, int32_t max_sequence, int32_t max_views, vp_engine **engine) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = engine_try(o, m, text_of(o, "device"), max_sequence, max_views, engine, &error);
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), m->name, r, &error);
}

/* {"block": score} -> scores by block (NaN: none) and their order in the file */
static int load_importance(const char *path, int32_t block_count, double *scores, int32_t *order) {
    vp_error error = {VP_OK, -1, "", ""};
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    char *text = NULL;
    size_t bytes = 0;
    int code = 0;
    vp_result r = vp_file_read(path, JSON_FILE_BYTES_MAX, &text, &bytes, &error);
    if (r == VP_OK) r = parse_json(&p, text, bytes, &error);
    if (r != VP_OK) code = complain_result(EXIT_INPUT, path, r, &error);
    else if (!node_is(&p.json, 0, VP_JSON_OBJECT)) code = complain(EXIT_INPUT, "%s: want one object {\"block\": score, ...}", path);
    for (int32_t b = 0; b < block_count; b++) { scores[b] = (double)NAN; order[b] = INT32_MAX; }
    for (uint32_t i = 1, member = 0; !code && member < p.json.nodes[0].count; member++) {
        char *key = node_text(&p.json, i);
        double score = node_number(&p.json, i + 1);
        int64_t block = -1;
        if (!key || !parse_number(key, &block) || block < 0 || block >= block_count)
            code = complain(EXIT_INPUT, "%s: \"%s\" is no block of this model (0..%d)", path, key ? key : "", block_count - 1);
        else if (order[block] != INT32_MAX) code = complain(EXIT_INPUT, "%s: block %lld stands there twice", path, (long long)block);
        else if (!isfinite(score)) code = complain(EXIT_INPUT, "%s: the score of block %lld is not a finite number", path, (long long)block);
        else { scores[block] = score; order[block] = (int32_t)member; }
        free(key);
        i = p.json.nodes[i + 1].end;
    }
    free(p.nodes);
    free(text);
    return code;
}

int model_choose_blocks(const options *o, const model *m, int32_t active, int32_t *blocks) {
    const char *path = text_of(o, "importance_scores_file");
    int32_t count = m->config.block_count;
    double *scores = resize(NULL, (size_t)count, sizeof *scores);
    int32_t *order = resize(NULL, (size_t)count, sizeof *order);
    int code = 0;
    if (active > count) code = complain(EXIT_USAGE, "num_active_blocks %d: the model has %d blocks", active, count);
    if (!code && path) code = load_importance(path, count, scores, order);
    if (!code) {
        vp_result r = vp_sampler_blocks(count, active, path ? scores : NULL, path ? order : NULL, blocks);
        if (r != VP_OK) code = complain(path ? EXIT_INPUT : EXIT_USAGE, "%s: %d active blocks cannot be chosen (does every block have a score?): %s",
                                        path ? path : "num_active_blocks", active, vp_result_text(r));
    }
    free(scores);
    free(order);
    return code;
}
