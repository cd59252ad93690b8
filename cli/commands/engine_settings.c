/* engine_settings.c: the settings of settings.h that need an engine: models, engines, profiles, plans of sweeps. */
#include "commands/settings.h"

#include "base/console.h"
#include "base/files.h"
#include "data/plan.h"
#include "profile/profiler.h"
#include "vlmprof_file.h"

int model_load(const struct options *options, struct model *model) {
    memset(model, 0, sizeof *model);
    if (!is_given(options, "model") && !text_of(options, "synthetic"))
        return complain(EXIT_USAGE, "%s needs --model DIR or --synthetic NAME", options->command->name);
    model->synthetic = !is_given(options, "model");
    model->name = text_of(options, model->synthetic ? "synthetic" : "model");
    return model->synthetic ? model_load_preset(model) : model_load_folder(model);
}

/* ---- the engine */
/* Complains about a word of --device, or if its GPU does not exist. Returns 0 or an exit code. */
static int check_device(const char *device) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_device_info gpu;
    int64_t index = 0;
    if (!strcmp(device, "auto") || !strcmp(device, "cpu")) return 0;
    if (strcmp(device, "cuda")
        && (strncmp(device, "cuda:", 5) || device[5] == '-' || !can_parse_number(device + 5, &index)
            || index > INT32_MAX))
        return complain(EXIT_USAGE, "--device: expected auto, cpu, cuda or cuda:N, got \"%.60s\"", device);
    vp_result result = vp_device_describe((int32_t)index, &gpu, &error);
    return result == VP_OK ? 0
                           : complain(exit_code_of(result), "--device %s: %s", device,
                                      error.text[0] ? error.text : vp_result_text(result));
}
static int check_gemm(const char *gemm) {
    char names[256] = "auto";
    for (int32_t i = 0; vp_engine_gemm_name(i); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, " %s", vp_engine_gemm_name(i));
    }
    return has_word(names, gemm) ? 0 : complain_word("gemm", "kernel of this processor", gemm, names);
}
/* The vp_gpu_switch of a word; 0 if there is none. */
static uint32_t gpu_switch_of(const char *word) {
    for (int32_t i = 0; vp_gpu_word_at(i); i++)
        if (!strcmp(vp_gpu_word_at(i)->word, word)) return vp_gpu_word_at(i)->bit;
    return 0;
}
int check_engine_options(const struct options *options) {
    const struct option_value *words = opt(options, "gpu");
    int code = check_device(text_of(options, "device"));
    if (!code && has_option(options, "gemm")) code = check_gemm(text_of(options, "gemm"));
    for (size_t i = 0; i < words->count && !code; i++) {
        const char *word = words->items[i];
        if (!gpu_switch_of(word)) code = complain_word("gpu", "value", word, "events dependent wgmma library tuned");
    }
    return code;
}
/* --activations of run, and the list of sweep, as bits. */
static uint32_t activations_given(const struct options *options) {
    uint32_t bits = 0;
    if (!has_option(options, "activations") || !is_given(options, "activations")) return 0;
    const struct option_value *list = opt(options, "activations");
    if (!list->count) bits = 1u << activations_of(list->text);
    for (size_t i = 0; i < list->count; i++) bits |= 1u << activations_of(list->items[i]);
    return bits;
}
vp_engine_options engine_options_of(const struct options *options) {
    vp_engine_options settings = vp_engine_options_default();
    settings.seed = (uint64_t)number_of(options, "seed");
    settings.device = text_of(options, "device");
    if (has_option(options, "gemm")) settings.gemm = text_of(options, "gemm");
    if (has_option(options, "weights")) {
        settings.weights = weights_of(text_of(options, "weights"));
        settings.head_weights = weights_of(text_of(options, "head_weights"));
        settings.vision_weights = weights_of(text_of(options, "vision_weights"));
    }
    settings.prunes = (has_option(options, "prune") && is_given(options, "prune"))
                      || (has_option(options, "prune_list") && is_given(options, "prune_list"));
    settings.activations = activations_given(options);
    settings.threads = (int32_t)number_of(options, "threads");
    for (size_t i = 0; i < opt(options, "gpu")->count; i++)
        settings.gpu |= gpu_switch_of(opt(options, "gpu")->items[i]);
    settings.progress = engine_progress;
    return settings;
}

/* ---- profiles */
enum { PROFILED_RUNS = 5 }; /* recorded requests without --num_runs and without a schedule */
struct group_word { const char *word; uint32_t flag; };
static const struct group_word GROUPS[] = {
    {"none", 0}, {"shape", VP_OPS_BY_SHAPE}, {"stage", VP_OPS_BY_STAGE}, {"part", VP_OPS_BY_PART},
    {"block", VP_OPS_BY_BLOCK}, {"step", VP_OPS_BY_STEP}, {"place", VP_OPS_BY_PLACE}};

/* Reads --group_by as flags. Returns 0 or an exit code. */
static int groups_read(const struct option_value *words, uint32_t *flags) {
    for (size_t i = 0; i < words->count; i++) {
        size_t group = 0;
        while (group < sizeof GROUPS / sizeof *GROUPS && strcmp(words->items[i], GROUPS[group].word)) group++;
        if (group == sizeof GROUPS / sizeof *GROUPS)
            return complain_word("group_by", "value", words->items[i], "none shape stage part block step place");
        *flags |= GROUPS[group].flag;
    }
    return 0;
}
/* Returns 1 if an option of the schedule is given. --warmup is not one: it does not change the recorded steps. */
static int has_schedule(const struct options *options) {
    static const char *const names[] = {"skip_first", "wait", "active", "repeat", "schedule_every_n_steps"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) if (is_given(options, names[i])) return 1;
    return 0;
}
/* The options of run --profile that sweep does not have. Returns 0 or an exit code. */
static int run_profile_read(const struct options *options, struct profile_settings *settings) {
    const char *files[] = {text_of(options, "html"), text_of(options, "trace"), text_of(options, "output")};
    const int64_t num_runs = number_of(options, "num_runs"); /* 0: not given */
    const int is_scheduled = has_schedule(options);
    int code = 0;
    settings->html = files[0];
    settings->trace = files[1];
    settings->output = files[2];
    settings->trace_dir = settings->output_dir;
    settings->format = text_of(options, "profile_format");
    settings->json = is_given(options, "json");
    settings->cold = is_given(options, "cold");
    settings->schedule = (vp_schedule){
        .skip_first = number_of(options, "skip_first"), .wait = number_of(options, "wait"),
        .warmup = settings->cold ? 0 : number_of(options, "warmup"),
        .active = is_scheduled ? number_of(options, "active") : num_runs ? num_runs : PROFILED_RUNS,
        .repeat = number_of(options, "repeat"), .every_n_steps = number_of(options, "schedule_every_n_steps")};
    settings->steps = is_scheduled ? num_runs : 0;
    if (!strcmp(settings->format, "folded")) { /* its rows are whole stacks, block by block */
        settings->groups |= VP_OPS_BY_PART | VP_OPS_BY_BLOCK;
        settings->stack_frames = (int32_t)VP_OP_STACK_LIMIT;
    }
    for (size_t i = 0; i < sizeof files / sizeof *files && !code; i++) if (files[i]) code = folder_check(files[i]);
    return code;
}
int profile_settings_read(const struct options *options, struct profile_settings *settings) {
    const int with_stack = is_given(options, "with_stack");
    *settings = (struct profile_settings){
        .options = options, .engine = engine_options_of(options), .weights = text_of(options, "weights"),
        .sort_by = text_of(options, "sort_by"), .row_limit = number_of(options, "row_limit"),
        .record_shapes = is_given(options, "record_shapes"), .with_stack = with_stack, .stack_frames = with_stack,
        .profile_memory = is_given(options, "profile_memory"), .output_dir = text_of(options, "output_dir")};
    int code = groups_read(opt(options, "group_by"), &settings->groups);
    if (!code && has_option(options, "profile")) code = run_profile_read(options, settings);
    else if (!code) {
        if (is_given(options, "trace")) settings->trace_dir = settings->output_dir;
        if (is_given(options, "use_profiler"))
            settings->points = is_given(options, "use_profiler_on_all_samples") ? PROFILE_ALL : PROFILE_FIRST;
    }
    return code ? code : check_sort_key(settings->sort_by);
}

/* ---- plans */
struct data_settings data_settings_of(const struct options *options) {
    return (struct data_settings){
        .annotations = text_of(options, "annotations"), .image_dir = text_of(options, "image_dir"),
        .allow_outside = is_given(options, "allow_outside"),
        .dataset_name = text_of(options, "dataset_name"), .prompt = text_of(options, "prompt"),
        .style = text_of(options, "style"), .answer_hint = text_of(options, "answer_hint"),
        .metric = text_of(options, "metric"), .stratify_by = text_of(options, "stratify_by"),
        .num_samples = (size_t)number_of(options, "num_samples"), .seed = (uint32_t)number_of(options, "seed"),
        .new_tokens = (int32_t)number_of(options, "max_new_tokens")};
}
static const struct option_value *given_list(const struct options *options, const char *name) {
    return is_given(options, name) ? opt(options, name) : NULL;
}
static struct launch_settings launch_settings_of(const struct options *options) {
    return (struct launch_settings){.command = text_of(options, "server"), .ready = text_of(options, "ready"),
                                    .folder = text_of(options, "output_dir"),
                                    .timeout_s = (int32_t)number_of(options, "ready_timeout_s"),
                                    .rounds = (int32_t)number_of(options, "server_rounds")};
}
static struct plan_settings plan_settings_of(const struct options *options) {
    struct plan_settings settings = {
        .data = data_settings_of(options), .files = opt(options, "data"),
        .image_knob = text_of(options, "image_knob"), .choices_file = text_of(options, "choices"),
        .importance_scores_file = text_of(options, "importance_scores_file"), .weights = text_of(options, "weights"),
        .sampling_strategy = text_of(options, "sampling_strategy"),
        .servers = {.endpoints = opt(options, "endpoint"), .models = opt(options, "endpoint_model"),
                    .request_knobs = opt(options, "request_knob"),
                    .rates = given_list(options, "request_rate_list"),
                    .concurrency = given_list(options, "concurrency_list"),
                    .server_knobs = given_list(options, "knob"), .launch = launch_settings_of(options),
                    .client = endpoint_settings_of(options),
                    .family = text_of(options, "family"), .keys = family_keys_of(options)},
        .run_count = (int32_t)number_of(options, "num_runs_per_sample"),
        .ignore_eos = is_given(options, "ignore_eos")};
    for (int knob = 0; knob < KNOB_EACH_END; knob++)
        if (KNOBS[knob].list && is_given(options, KNOBS[knob].list))
            settings.lists[knob] = opt(options, KNOBS[knob].list);
    return settings;
}
/* Adds options to a hash: the number of a COUNT, 1 for a given FLAG, otherwise the text. */
static uint64_t hash_options(uint64_t hash, const struct options *options, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct option_value *value = opt(options, names[i]);
        const option_kind kind = options->command->options[value - options->values].kind;
        hash = kind == COUNT  ? hash_number(hash, value->number)
               : kind == FLAG ? hash_number(hash, value->given)
                              : hash_text(hash, value->text);
    }
    return hash;
}
static void served_fingerprint(const struct options *options, struct plan *plan) {
    static const char *const names[] = {"num_runs_per_sample", "seed",   "max_runs",   "stop_half_width", "time_box_s",
                                        "endpoint_api",        "family", "ignore_eos", "no_cache"};
    static const char *const loaded[] = {"arrivals", "ramp_s", "server"};
    uint64_t hash = hash_options(hash_text(HASH_START, "servers"), options, names, sizeof names / sizeof *names);
    hash = hash_number(hash, !is_given(options, "same_image"));
    for (size_t i = 0; i < options->key_count; i++) hash = hash_text(hash, options->keys[i]);
    if (knobs_are_loaded(&plan->configurations[0].knobs))
        hash = hash_options(hash, options, loaded, sizeof loaded / sizeof *loaded);
    if (is_given(options, "twins")) /* journals from before twins stay valid */
        hash = hash_text(hash_number(hash, number_of(options, "twins")), "adjusted");
    plan->fingerprint = plan_hash_sets(hash, plan);
}
static int plan_fingerprint(const struct options *options, const struct model *model, struct plan *plan) {
    static const char *const names[] = {"num_runs_per_sample", "seed", "threads", "max_runs", "bare_every", "weights",
                                        "device", "gemm", "timing", "stop_half_width", "time_box_s", "ignore_eos"};
    const char *path = text_of(options, "importance_scores_file");
    uint64_t hash = hash_number(hash_text(HASH_START, model->name), (int64_t)model->identity);
    hash = hash_options(hash, options, names, sizeof names / sizeof *names);
    if (is_given(options, "answer_hint")) hash = hash_text(hash, text_of(options, "answer_hint"));
    for (size_t i = 0; i < opt(options, "knob")->count; i++) hash = hash_text(hash, opt(options, "knob")->items[i]);
    for (size_t i = 0; i < opt(options, "gpu")->count; i++) hash = hash_text(hash, opt(options, "gpu")->items[i]);
    if (strcmp(text_of(options, "head_weights"), "bf16") != 0) hash = hash_text(hash, text_of(options, "head_weights"));
    if (strcmp(text_of(options, "vision_weights"), "bf16") != 0)
        hash = hash_text(hash_text(hash, "vision"), text_of(options, "vision_weights"));
    if (path) {
        vp_error error = {VP_OK, -1, "", ""};
        char *text = NULL;
        size_t bytes = 0;
        vp_result result = vp_file_read(path, JSON_FILE_BYTES_MAX, &text, &bytes, &error);
        if (result != VP_OK) return complain_result(EXIT_INPUT, path, result, &error);
        hash = hash_bytes(hash, text, bytes);
        free(text);
    }
    plan->fingerprint = plan_hash_sets(hash, plan);
    return 0;
}
int plan_of_options(const struct options *options, const struct model *model, struct plan *plan) {
    plan->settings = plan_settings_of(options);
    int code = plan_make(model, plan);
    if (!code && model) code = plan_fingerprint(options, model, plan);
    else if (!code) served_fingerprint(options, plan);
    return code;
}
