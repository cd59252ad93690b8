/* plan.c: the grid of knobs times samples, the names of its files, its fingerprint. */
#include "dataset/plan.h"

#include "base/console.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/option_rows.h"
#include "request/input.h"
#include "tile/family.h"
#include "vlmprof_file.h"
#include "vlmprof_score.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct image_size size_of(const struct configuration *configuration) {
    const struct image_size size = {configuration->tier, configuration->vision_tokens, configuration->image_knob,
                                    configuration->image_knob_value};
    return size;
}
vp_tile_options configuration_tiles(const struct configuration *configuration) {
    const struct image_size size = size_of(configuration);
    return image_size_tiles(&size);
}
const vp_layout *configuration_layout(const struct model *model, const struct configuration *configuration,
                                      const struct entry *entry, vp_layout *layout, vp_picture *picture, char *reason,
                                      size_t capacity) {
    const struct image_size size = size_of(configuration);
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    snprintf(reason, capacity, "%s", entry->reason ? configuration->set->reasons[entry->reason - 1] : "");
    if (!entry->has_image || entry->reason) return NULL;
    result = image_size_layout(model, &size, entry->width_px, entry->height_px, picture, layout, &error);
    if (result == VP_OK) return layout;
    error_line(reason, capacity, result, &error);
    return NULL;
}

int configuration_sent_size(const struct configuration *configuration, const struct entry *entry, int32_t *width_px,
                            int32_t *height_px, char *reason, size_t capacity) {
    const vp_geometry geometry = vp_geometry_default();
    const vp_tile_options tiles = configuration_tiles(configuration);
    vp_error error = {VP_OK, -1, "", ""};
    vp_layout layout;
    vp_result result;
    *width_px = *height_px = 0;
    if (!configuration->tier && !configuration->vision_tokens) return 0;
    if (configuration->variant->family)
        return family_size_for(configuration->variant->family, entry->width_px, entry->height_px,
                               configuration->vision_tokens, width_px, height_px, reason, capacity);
    result = vp_layout_compute(&geometry, &tiles, entry->width_px, entry->height_px, &layout, &error);
    if (result != VP_OK) {
        error_line(reason, capacity, result, &error);
        return EXIT_INPUT;
    }
    *width_px = layout.canvas_width_px;
    *height_px = layout.canvas_height_px;
    return 0;
}

int32_t entry_sequence(const struct entry *entry, const vp_layout *layout) {
    return !entry->no_bos + (layout ? layout->image_tokens : 0) + entry->text_count;
}

void configuration_input(const struct plan *plan, const struct configuration *configuration,
                         const struct sample *sample, const vp_layout *layout, const vp_picture *picture,
                         const vp_image *image, struct pass_input *input) {
    memset(input, 0, sizeof *input);
    input->image = image;
    input->layout = layout;
    input->picture = picture;
    input->text_ids = sample->text_ids;
    input->text_count = sample->text_count;
    input->no_bos = sample->no_bos;
    input->top_k = configuration->top_k;
    input->blocks = configuration->blocks;
    input->block_count = configuration->block_count;
    input->new_tokens = configuration->set->new_tokens;
    input->ignore_eos = plan->ignore_eos;
}

/* The end of a file's name; without a list of weights there is none in it. */
static const char *weights_ending(const struct plan *plan, const struct configuration *configuration, char out[32]) {
    out[0] = 0;
    if (plan->names_weights) snprintf(out, 32, "_weights%.20s", configuration->weights);
    return out;
}
/* File name, and the longest request of the configuration. A sequence that does not fit becomes a failed row later. */
static void plan_configuration(const struct model *model, struct plan *plan, struct configuration *configuration) {
    char name[512], ending[32], reason[LINE_BYTES];
    vp_layout storage;
    vp_picture picture;
    int64_t crops = 0, count = 0;
    for (size_t i = 0; i < configuration->set->count; i++) {
        const struct entry *entry = &configuration->set->samples[i];
        const vp_layout *layout =
            configuration_layout(model, configuration, entry, &storage, &picture, reason, sizeof reason);
        int64_t need = (int64_t)entry_sequence(entry, layout) + configuration->set->new_tokens - 1;
        if (layout) { crops += layout->crops; count++; }
        plan->has_images |= layout != NULL;
        if (reason[0]) continue;
        if (need > model->config.max_positions) continue;
        if (need > configuration->need_sequence) configuration->need_sequence = (int32_t)need;
        if (layout && layout->views > configuration->need_views) configuration->need_views = layout->views;
    }
    if (configuration->need_sequence > plan->max_sequence) plan->max_sequence = configuration->need_sequence;
    if (configuration->need_views > plan->max_views) plan->max_views = configuration->need_views;
    if (configuration->tier) /* the mean is cut to an integer, as the experiments do */
        snprintf(name, sizeof name, "%s_imgsizetier-%s_crops%d_topk%d_blocks%d%s.json", configuration->set->task,
                 configuration->tier->name, count ? (int)(crops / count) : 0, configuration->top_k,
                 configuration->block_count, weights_ending(plan, configuration, ending));
    else {
        char size[64] = "asis";
        if (configuration->vision_tokens) snprintf(size, sizeof size, "tokens%d", configuration->vision_tokens);
        else if (configuration->image_knob)
            snprintf(size, sizeof size, "%.40s%d", configuration->image_knob, configuration->image_knob_value);
        snprintf(name, sizeof name, "%.300s_imgsize%s_topk%d_blocks%d%s.json", configuration->set->task, size,
                 configuration->top_k, configuration->block_count, weights_ending(plan, configuration, ending));
    }
    configuration->file_name = copy_text(name, strlen(name));
}
/* File name of a configuration of servers. */
static void plan_variant(struct configuration *configuration) {
    char *variant = variant_file_name(configuration->variant), size[64] = "asis", name[512];
    if (configuration->tier) snprintf(size, sizeof size, "tier-%s", configuration->tier->name);
    else if (configuration->vision_tokens) snprintf(size, sizeof size, "tokens%d", configuration->vision_tokens);
    snprintf(name, sizeof name, "%.300s_imgsize%s_%s.json", configuration->set->task, size, variant);
    configuration->file_name = copy_text(name, strlen(name));
    free(variant);
}

static int check_lists(const struct options *options, const struct model *model) {
    const struct option_value *tiers = opt(options, "tier_list"), *tokens = opt(options, "vision_tokens_list"),
                              *ks = opt(options, "top_k_list");
    const vp_geometry geometry = model ? model->config.geometry : vp_geometry_default();
    /* by a family's rule any number can be aimed at */
    const int is_molmo = model && model_is_molmo(model);
    const int32_t least = !model && is_given(options, "family") ? 1 : 2 * vp_geometry_tokens_per_crop(&geometry);
    for (size_t i = 0; i < tiers->count; i++) if (!vp_tier_find(tiers->items[i]))
        return complain(EXIT_USAGE, "--tier_list: \"%s\" is none of: low medium high", tiers->items[i]);
    for (size_t i = 0; i < tokens->count && (is_molmo || !model); i++) if (tokens->numbers[i] < least)
            return complain(EXIT_USAGE, "--vision_tokens_list %s: the global view and one crop have %d tokens already",
                            tokens->items[i], least);
    if (!model && tiers->given && is_given(options, "family"))
        return complain(EXIT_USAGE, "--tier_list: tiers are crops of MolmoE's canvas; with --family aim at tokens: "
                                    "--vision_tokens_list");
    if (model && !is_molmo && tiers->given)
        return complain(EXIT_USAGE, "--tier_list: tiers belong to the Molmo models, not to %s",
                        vp_architecture_name(model->config.architecture));
    if (model && ks->given && !model->config.expert_count)
        return complain(EXIT_USAGE, "--top_k_list: %s has no experts to choose from",
                        vp_architecture_name(model->config.architecture));
    for (size_t i = 0; i < ks->count && model; i++)
        if (ks->given && ks->numbers[i] > model->config.expert_count)
            return complain(EXIT_USAGE, "--top_k_list %s: the model has %d experts", ks->items[i],
                            model->config.expert_count);
    return 0;
}

/* Reads --image_knob and checks that the model can have each image size of the lists. Returns 0 or an exit code. */
static int check_sizes(const struct options *options, const struct model *model, struct plan *plan) {
    const struct option_value *tokens = opt(options, "vision_tokens_list");
    int code = image_knob_read(options, &plan->image_knob, &plan->image_knob_values, &plan->image_knob_count);
    for (size_t i = 0; i < plan->image_knob_count && !code; i++) {
        const struct image_size size = {NULL, 0, plan->image_knob, plan->image_knob_values[i]};
        code = image_size_check(options, model, &size);
    }
    for (size_t i = 0; i < tokens->count && !code; i++) {
        const struct image_size size = {NULL, (int32_t)tokens->numbers[i], NULL, 0};
        code = image_size_check(options, model, &size);
    }
    return code;
}

/* Reads --weights or --weights_list. Returns 0 or an exit code. */
static int read_weights(const struct options *options, struct plan *plan) {
    const struct option_value *list = opt(options, "weights_list");
    plan->names_weights = list->given;
    plan->weights_count = list->given ? list->count : 1;
    plan->weights = resize(NULL, plan->weights_count, sizeof *plan->weights);
    plan->weights[0] = text_of(options, "weights");
    for (size_t i = 0; i < list->count && list->given; i++) {
        if (!has_word(WEIGHTS_NAMES, list->items[i]))
            return complain(EXIT_USAGE, "--weights_list: \"%s\" is none of: " WEIGHTS_NAMES, list->items[i]);
        plan->weights[i] = list->items[i];
    }
    return 0;
}

/* The points of the grid that the strategy visits, as places in the three lists: int32 [*count, 3], malloc'ed. */
static int grid_points(const struct options *options, const int32_t counts[3], int32_t **index, size_t *count,
                       size_t *repeats) {
    const char *name = text_of(options, "sampling_strategy");
    uint32_t seed = (uint32_t)number_of(options, "seed");
    size_t points = vp_sampler_lhs_points(counts);
    vp_grid_strategy strategy = VP_GRID_FULL;
    vp_result result = vp_sampler_strategy_find(name, &strategy); /* the option table knows the names */
    if (result == VP_OK) result = vp_sampler_grid(strategy, counts, seed, points, NULL, 0, count, repeats);
    if (result != VP_OK && result != VP_ERR_CAPACITY)
        return complain(EXIT_USAGE, "--sampling_strategy %s: %s", name, vp_result_text(result));
    if (!*count)
        return complain(EXIT_USAGE,
                        "--sampling_strategy %s draws no point of so small a grid; lengthen the lists or use full",
                        name);
    *index = resize(NULL, *count * 3, sizeof **index);
    result = vp_sampler_grid(strategy, counts, seed, points, *index, *count, count, repeats);
    return result == VP_OK ? 0 : complain(EXIT_USAGE, "--sampling_strategy %s: %s", name, vp_result_text(result));
}

/* Sets what a configuration of the engine has beside its image size. Returns 0 or an exit code. */
static int choose_model_knobs(const struct options *options, const struct model *model,
                              struct configuration *configuration, const int32_t *at) {
    const struct option_value *ks = opt(options, "top_k_list"), *blocks = opt(options, "num_active_blocks_list");
    configuration->top_k = ks->given ? (int32_t)ks->numbers[at[1]] : model->config.top_k;
    configuration->block_count = blocks->given ? (int32_t)blocks->numbers[at[2]] : model->config.block_count;
    configuration->blocks = resize(NULL, (size_t)model->config.block_count, sizeof *configuration->blocks);
    return model_choose_blocks(options, model, configuration->block_count, configuration->blocks);
}
static int plan_grid(const struct options *options, const struct model *model, struct plan *plan) {
    const struct option_value *tiers = opt(options, "tier_list"), *tokens = opt(options, "vision_tokens_list");
    const struct option_value *ks = opt(options, "top_k_list"), *blocks = opt(options, "num_active_blocks_list");
    int32_t counts[3] = {0, ks->given ? (int32_t)ks->count : 1, blocks->given ? (int32_t)blocks->count : 1},
            *index = NULL;
    size_t count = 0, variants; /* configurations of a point of the grid: they differ in their weights */
    const int has_tiers = model && model_is_molmo(model);
    int code = check_lists(options, model);
    while (has_tiers && vp_tier_at(counts[0])) counts[0]++;
    if (tokens->given || tiers->given) counts[0] = (int32_t)(tokens->given ? tokens->count : tiers->count);
    else if (!has_tiers) counts[0] = 1; /* images as they are */
    if (!model) counts[1] = (int32_t)plan->variants.count;
    if (!code && model) code = check_sizes(options, model, plan);
    if (!code && model) code = read_weights(options, plan);
    if (plan->image_knob_count) counts[0] = (int32_t)plan->image_knob_count;
    if (!code) code = grid_points(options, counts, &index, &count, &plan->repeats);
    variants = model && !code ? plan->weights_count : 1;
    plan->configurations = zeroed(plan->set_count * count * variants + 1, sizeof *plan->configurations);
    for (size_t i = 0; !code && i < plan->set_count * count * variants; i++) {
        const int32_t *at = index + i / variants % count * 3;
        struct configuration *configuration = &plan->configurations[plan->configuration_count++];
        configuration->set = &plan->sets[i / variants / count];
        configuration->in_index = -1;
        plan->point_count += configuration->set->count;
        if (tokens->given) configuration->vision_tokens = (int32_t)tokens->numbers[at[0]];
        else if (tiers->given) configuration->tier = vp_tier_find(tiers->items[at[0]]);
        else if (plan->image_knob) {
            configuration->image_knob = plan->image_knob;
            configuration->image_knob_value = plan->image_knob_values[at[0]];
        } else if (has_tiers) configuration->tier = vp_tier_at(at[0]);
        if (!model) {
            configuration->variant = &plan->variants.items[at[1]];
            plan_variant(configuration);
        } else {
            configuration->weights_at = i % variants;
            configuration->weights = plan->weights[configuration->weights_at];
            if ((code = choose_model_knobs(options, model, configuration, at)) == 0)
                plan_configuration(model, plan, configuration);
        }
    }
    free(index);
    return code;
}

/* The data sets into a hash. */
static uint64_t hash_sets(uint64_t hash, const struct plan *plan) {
    for (size_t i = 0; i < plan->set_count; i++) {
        hash = hash_text(hash_text(hash, plan->sets[i].task), vp_score_metric_of(plan->sets[i].metric)->name);
        hash = hash_number(hash_number(hash, plan->sets[i].new_tokens), (int64_t)plan->sets[i].hash);
    }
    return hash;
}
/* Of a sweep of servers. Endpoints, models and request knobs are the grid. */
static void plan_served_fingerprint(const struct options *options, struct plan *plan) {
    static const char *const numbers[] = {"num_runs_per_sample", "seed", "max_runs"};
    static const char *const texts[] = {"stop_half_width", "time_box_s", "endpoint_api", "family"};
    static const char *const flags[] = {"ignore_eos", "no_cache", "unique_image"};
    uint64_t hash = hash_text(HASH_START, "servers");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash = hash_number(hash, number_of(options, numbers[i]));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) hash = hash_text(hash, text_of(options, texts[i]));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) hash = hash_number(hash, is_given(options, flags[i]));
    for (size_t i = 0; i < options->key_count; i++) hash = hash_text(hash, options->keys[i]);
    if (is_given(options, "twins")) /* journals from before twins go on */
        hash = hash_text(hash_number(hash, number_of(options, "twins")), text_of(options, "twins_method"));
    plan->fingerprint = hash_sets(hash, plan);
}
static int plan_fingerprint(const struct options *options, const struct model *model, struct plan *plan) {
    static const char *const numbers[] = {"num_runs_per_sample", "seed", "threads", "max_runs", "bare_every"};
    static const char *const texts[] = {"weights", "device", "gemm", "timing", "stop_half_width", "time_box_s"};
    uint64_t hash = hash_number(hash_text(HASH_START, model->name), (int64_t)model->identity);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash = hash_number(hash, number_of(options, numbers[i]));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) hash = hash_text(hash, text_of(options, texts[i]));
    hash = hash_number(hash, plan->ignore_eos);
    if (is_given(options, "answer_hint")) hash = hash_text(hash, text_of(options, "answer_hint"));
    for (size_t i = 0; i < opt(options, "gpu")->count; i++) hash = hash_text(hash, opt(options, "gpu")->items[i]);
    if (strcmp(text_of(options, "head_weights"), "bf16") != 0)
        hash = hash_text(hash, text_of(options, "head_weights"));
    if (strcmp(text_of(options, "vision_weights"), "bf16") != 0)
        hash = hash_text(hash_text(hash, "vision"), text_of(options, "vision_weights"));
    if (text_of(options, "importance_scores_file")) {
        vp_error error = {VP_OK, -1, "", ""};
        char *text = NULL;
        size_t bytes = 0;
        vp_result result = vp_file_read(text_of(options, "importance_scores_file"), JSON_FILE_BYTES_MAX, &text, &bytes,
                                        &error);
        if (result != VP_OK)
            return complain_result(EXIT_INPUT, text_of(options, "importance_scores_file"), result, &error);
        hash = hash_bytes(hash, text, bytes);
        free(text);
    }
    plan->fingerprint = hash_sets(hash, plan);
    return 0;
}

int plan_make(const struct options *options, const struct model *model, struct plan *plan) {
    const struct option_value *data = opt(options, "data");
    int code;
    plan->run_count = (int32_t)number_of(options, "num_runs_per_sample");
    plan->ignore_eos = is_given(options, "ignore_eos");
    plan->max_views = 1;
    if (!model && (code = variants_make(options, &plan->variants)) != 0) return code;
    plan->sets = zeroed(data->count, sizeof *plan->sets);
    for (size_t i = 0; i < data->count; i++) {
        struct dataset *dataset = &plan->sets[plan->set_count++];
        dataset->path = data->items[i];
        if ((code = dataset_load(options, model, dataset)) != 0) return code;
        if (dataset->new_tokens > plan->new_tokens) plan->new_tokens = dataset->new_tokens;
        for (size_t k = 0; k < i; k++)
            if (!strcmp(dataset->task, plan->sets[k].task))
                return complain(EXIT_USAGE, "--data: %s and %s are both called %s; sweep them into two folders",
                                plan->sets[k].path, dataset->path, dataset->task);
    }
    if ((code = plan_grid(options, model, plan)) != 0) return code;
    if (model) return plan_fingerprint(options, model, plan);
    plan_served_fingerprint(options, plan);
    return 0;
}
/* The bytes of a set of engines, as bits of their places, and of the smallest one outside of it. */
static uint64_t set_bytes(const struct plan *plan, const uint64_t *bytes, size_t set, uint64_t *least_other) {
    uint64_t sum = 0;
    *least_other = UINT64_MAX;
    for (size_t i = 0; i < plan->weights_count; i++) {
        if (set >> i & 1) sum += bytes[i];
        else if (bytes[i] && bytes[i] < *least_other) *least_other = bytes[i];
    }
    return sum;
}
void plan_fitting(struct text_buffer *text, const struct plan *plan, const uint64_t *bytes, uint64_t free_bytes) {
    for (size_t set = ((size_t)1 << plan->weights_count) - 1; set > 0; set--) {
        uint64_t least_other, sum = set_bytes(plan, bytes, set, &least_other);
        int is_needed = 1;
        const char *between = text->bytes ? "; " : "";
        for (size_t i = 0; i < plan->weights_count; i++) is_needed &= !(set >> i & 1) || bytes[i] > 0;
        if (!is_needed || sum > free_bytes || (least_other < UINT64_MAX && sum + least_other <= free_bytes)) continue;
        for (size_t i = 0; i < plan->weights_count; i++) {
            if (!(set >> i & 1)) continue;
            text_add_string(text, between);
            text_add_string(text, plan->weights[i]);
            between = " ";
        }
    }
}
void plan_free(struct plan *plan) {
    for (size_t i = 0; i < plan->set_count; i++) dataset_free(&plan->sets[i]);
    for (size_t i = 0; i < plan->configuration_count; i++) {
        free(plan->configurations[i].blocks);
        free(plan->configurations[i].file_name);
        free(plan->configurations[i].shapes);
        free(plan->configurations[i].dropped);
    }
    variants_free(&plan->variants);
    free((void *)plan->weights);
    free(plan->image_knob);
    free(plan->image_knob_values);
    free(plan->sets);
    free(plan->configurations);
}
