/* plan.c: the grid of knobs times samples, the names of its files, and its fingerprint. */
#include "data/plan.h"

#include "base/console.h"
#include "data/choice.h"
#include "measure/input.h"
#include "results/choices.h"
#include "tile/family.h"
#include "vlmprof_file.h"
#include "vlmprof_score.h"

static struct image_size size_of(const struct configuration *configuration) {
    const struct knob_values *knobs = &configuration->knobs;
    return (struct image_size){knob_tier(knobs), (int32_t)knob_number(knobs, KNOB_TOKENS), knob_text(knobs, KNOB_IMAGE),
                               (int32_t)knob_number(knobs, KNOB_IMAGE), NULL};
}
vp_tile_options configuration_tiles(const struct configuration *configuration) {
    const struct image_size size = size_of(configuration);
    return image_size_tiles(&size);
}
const struct cuts *configuration_cuts(const struct model *model, const struct configuration *configuration,
                                      const struct entry *entry, struct cuts *cuts, char *reason, size_t capacity) {
    const struct image_size size = size_of(configuration);
    vp_error error = {VP_OK, -1, "", ""};
    snprintf(reason, capacity, "%s", entry->reason ? configuration->set->reasons[entry->reason - 1] : "");
    if (!entry->image_count || entry->reason) return NULL;
    vp_result result = model_cut(model, &size, entry->sizes, entry->image_count, cuts, &error);
    if (result == VP_OK) return cuts;
    error_line(reason, capacity, result, &error);
    return NULL;
}

int configuration_sent_size(const struct configuration *configuration, const struct image_px *image, int32_t *width_px,
                            int32_t *height_px, char *reason, size_t capacity) {
    const vp_geometry geometry = vp_geometry_default();
    const vp_tile_options tiles = configuration_tiles(configuration);
    vp_error error = {VP_OK, -1, "", ""};
    vp_layout layout;
    *width_px = *height_px = 0;
    if (!knob_is_set(&configuration->knobs, KNOB_TIER) && !knob_is_set(&configuration->knobs, KNOB_TOKENS)) return 0;
    if (configuration->variant->family)
        return family_size_for(configuration->variant->family, image->width_px, image->height_px,
                               (int32_t)knob_number(&configuration->knobs, KNOB_TOKENS), width_px, height_px, reason,
                               capacity);
    vp_result result = vp_layout_compute(&geometry, &tiles, image->width_px, image->height_px, &layout, &error);
    if (result != VP_OK) {
        error_line(reason, capacity, result, &error);
        return EXIT_INPUT;
    }
    *width_px = layout.canvas_width_px;
    *height_px = layout.canvas_height_px;
    return 0;
}

int32_t entry_sequence(const struct entry *entry, const struct cuts *cuts) {
    return !entry->no_bos + (cuts ? cuts->whole.image_tokens : 0) + entry->text_count;
}

void configuration_input(const struct plan *plan, const struct configuration *configuration,
                         const struct sample *sample, const struct cuts *cuts, const vp_image *images,
                         struct pass_input *input) {
    *input = (struct pass_input){
        .images = images, .cuts = cuts, .tokens = sample->tokens,
        .engine.max_new_tokens = configuration->set->new_tokens, .engine.ignore_eos = plan->settings.ignore_eos};
    input_apply_knobs(input, &configuration->knobs);
    input_seed_pruning(input, plan->settings.data.seed, sample->id);
}

/* Returns 1 if the values of --knob belong to the data files in order, because no server is started with them. */
static int follows_files(const struct plan *plan) {
    return !plan->settings.servers.launch.command && knobs_combinations(&plan->variants.server_knobs) > 1;
}
/* The name of a configuration's file. crops: the mean of a tier's crops, truncated to an integer, as in the
 * experiments. */
static void name_configuration(const struct plan *plan, struct configuration *configuration, int crops) {
    struct text_buffer name = {NULL, 0, 0};
    char *variant = configuration->variant ? variant_file_name(configuration->variant) : NULL;
    text_add(&name, configuration->set->task, strnlen(configuration->set->task, 300));
    if (follows_files(plan)) {
        text_add_string(&name, "_");
        knobs_words(&plan->variants.server_knobs, (size_t)(configuration->set - plan->sets), &name);
    }
    knob_add_name(&name, &configuration->knobs, crops, plan->named);
    if (variant) text_add_string(&name, "_");
    if (variant) text_add_string(&name, variant);
    text_add_string(&name, ".json");
    free(variant);
    configuration->file_name = name.data;
}
/* Sets the file name and the longest request of the configuration. A sequence that does not fit becomes a failed row
 * later. */
static void plan_configuration(const struct model *model, struct plan *plan, struct configuration *configuration) {
    char reason[LINE_BYTES];
    struct cuts storage = {0};
    int64_t crops = 0, count = 0;
    for (size_t i = 0; i < configuration->set->count; i++) {
        const struct entry *entry = &configuration->set->samples[i];
        const struct cuts *cuts = configuration_cuts(model, configuration, entry, &storage, reason, sizeof reason);
        int64_t need = (int64_t)entry_sequence(entry, cuts) + configuration->set->new_tokens - 1;
        if (cuts) { crops += cuts->whole.crops; count++; }
        plan->has_images |= cuts != NULL;
        if (reason[0]) continue;
        if (need > model->config.max_positions) continue;
        if (need > configuration->need_sequence) configuration->need_sequence = (int32_t)need;
        if (cuts && cuts->whole.views > configuration->need_views) configuration->need_views = cuts->whole.views;
    }
    cuts_free(&storage);
    if (configuration->need_sequence > plan->max_sequence) plan->max_sequence = configuration->need_sequence;
    if (configuration->need_views > plan->max_views) plan->max_views = configuration->need_views;
    name_configuration(plan, configuration, count ? (int)(crops / count) : 0);
}

/* The number of values of a knob's list; without a list 1, for the model's own value. */
static int32_t list_count(const struct plan_settings *settings, int knob) {
    return settings->lists[knob] ? (int32_t)settings->lists[knob]->count : 1;
}
/* Complains about words of the lists that are not valid choices. Returns 0 or EXIT_USAGE. */
static int check_words(const struct plan_settings *settings) {
    for (int knob = 0; knob < KNOB_EACH_END; knob++) {
        const struct option_value *list = KNOBS[knob].choices ? settings->lists[knob] : NULL;
        for (size_t i = 0; list && i < list->count; i++)
            if (!has_word(KNOBS[knob].choices, list->items[i]))
                return complain_word(KNOBS[knob].list, "value", list->items[i], KNOBS[knob].choices);
    }
    return 0;
}
static int check_lists(const struct plan_settings *settings, const struct model *model) {
    const struct option_value *tiers = settings->lists[KNOB_TIER], *tokens = settings->lists[KNOB_TOKENS],
                              *ks = settings->lists[KNOB_TOP_K];
    const vp_geometry geometry = model ? model->config.geometry : vp_geometry_default();
    /* with a family's rule, any number can be the target */
    const int is_tiled = !model || model->rules->is_tiled;
    const int32_t least = !model && settings->servers.family ? 1 : 2 * vp_geometry_tokens_per_crop(&geometry);
    if (check_words(settings)) return EXIT_USAGE;
    for (size_t i = 0; tokens && i < tokens->count && is_tiled; i++) if (tokens->numbers[i] < least)
            return complain(EXIT_USAGE, "--vision_tokens_list %s: the global view and one crop already have %d tokens",
                            tokens->items[i], least);
    if (!model && tiers && settings->servers.family)
        return complain(EXIT_USAGE, "--tier_list: tiers exist only for MolmoE's crops; with --family, give target "
                                    "tokens: --vision_tokens_list");
    if (!is_tiled && tiers)
        return complain(EXIT_USAGE, "--tier_list: tiers exist only for Molmo models, not for %s",
                        vp_architecture_name(model->config.architecture));
    if (model && ks && !model->config.expert_count)
        return complain(EXIT_USAGE, "--top_k_list: %s has no experts to choose from",
                        vp_architecture_name(model->config.architecture));
    for (size_t i = 0; ks && i < ks->count && model; i++)
        if (ks->numbers[i] > model->config.expert_count)
            return complain(EXIT_USAGE, "--top_k_list %s: the model has %d experts", ks->items[i],
                            model->config.expert_count);
    return 0;
}

/* The grid during its construction. */
struct grid {
    const struct plan_settings *settings; const struct model *model; struct plan *plan; /* model is NULL for servers */
    char *image_knob; int32_t *image_values; size_t image_count; /* from --image_knob */
    /* its dimensions: the size of images, then knobs of the engine; for a server, its variants replace the first of
     * these */
    int knobs[GRID_KNOBS_MAX]; int32_t counts[GRID_KNOBS_MAX], width;
    int32_t *index; size_t count; /* the points: indices into the lists, [count, width] */
    size_t each;                  /* number of configurations per point */
};
enum { GRID_SIZE = 0, GRID_VARIANT = 1 };
_Static_assert(KNOB_EACH - KNOB_IMAGE <= GRID_KNOBS_MAX, "the grid has more knobs than choose_points accepts");
/* Reads --image_knob and checks that the model can have each image size of the lists. Returns 0 or an exit code. */
static int check_sizes(struct grid *grid) {
    const struct option_value *tokens = grid->settings->lists[KNOB_TOKENS];
    int code = image_knob_read(grid->settings->image_knob, &grid->image_knob, &grid->image_values, &grid->image_count);
    for (size_t i = 0; i < grid->image_count && !code; i++) {
        const struct image_size size = {NULL, 0, grid->image_knob, grid->image_values[i], NULL};
        code = grid->model->rules->knobs(grid->model, &size, "vision_tokens_list");
    }
    for (size_t i = 0; tokens && i < tokens->count && !code; i++) {
        const struct image_size size = {NULL, (int32_t)tokens->numbers[i], NULL, 0, NULL};
        code = grid->model->rules->knobs(grid->model, &size, "vision_tokens_list");
    }
    return code;
}
/* Sets a knob to a value of its list. Returns 0 if there is no list. */
static int set_listed(const struct plan_settings *settings, int knob, size_t at, struct knob_values *values) {
    const struct option_value *list = settings->lists[knob];
    if (!list) return 0;
    if (KNOBS[knob].type == KNOB_IS_NUMBER) knob_set_number(values, knob, list->numbers[at]);
    else knob_set_text(values, knob, list->items[at]);
    return 1;
}
/* Reads --weights or --weights_list, and counts the values of the other knobs with which each point is measured.
 * Returns 0 or an exit code. */
static int read_each(struct grid *grid) {
    const struct option_value *list = grid->settings->lists[KNOB_WEIGHTS];
    const struct option_value *values = grid->settings->lists[KNOB_PRUNE];
    struct plan *plan = grid->plan;
    for (int knob = KNOB_EACH; knob < KNOB_EACH_END; knob++) grid->each *= (size_t)list_count(grid->settings, knob);
    if (values) {
        if (model_is_blind(grid->model))
            return complain(EXIT_USAGE, "--prune_list: %s accepts only text, so there are no image tokens",
                            vp_architecture_name(grid->model->config.architecture));
        if (prune_check("prune_list", (const char *const *)values->items, values->count)) return EXIT_USAGE;
    }
    plan->weights_count = (size_t)list_count(grid->settings, KNOB_WEIGHTS);
    plan->weights = resize(NULL, plan->weights_count, sizeof *plan->weights);
    plan->weights[0] = grid->settings->weights;
    for (size_t i = 0; list && i < list->count; i++) plan->weights[i] = list->items[i];
    return 0;
}

static int grid_points(struct grid *grid) {
    const char *name = grid->settings->sampling_strategy;
    const uint32_t seed = grid->settings->data.seed;
    size_t points = default_lhs_points(grid->counts, grid->width), *repeats = &grid->plan->repeats;
    enum grid_strategy strategy = GRID_FULL;
    vp_result result = find_strategy(name, &strategy); /* the option table knows the names */
    if (result == VP_OK)
        result = choose_points(strategy, grid->counts, grid->width, seed, points, NULL, 0, &grid->count, repeats);
    if (result != VP_OK && result != VP_ERR_CAPACITY)
        return complain(EXIT_USAGE, "--sampling_strategy %s: %s", name, vp_result_text(result));
    if (!grid->count)
        return complain(EXIT_USAGE,
                        "--sampling_strategy %s draws no point from such a small grid; lengthen the lists or use full",
                        name);
    grid->index = resize(NULL, grid->count * (size_t)grid->width, sizeof *grid->index);
    result = choose_points(strategy, grid->counts, grid->width, seed, points, grid->index, grid->count, &grid->count,
                           repeats);
    return result == VP_OK ? 0 : complain(EXIT_USAGE, "--sampling_strategy %s: %s", name, vp_result_text(result));
}
/* Sets the image size of a configuration, and its maximum number of crops. */
static void set_size(const struct grid *grid, size_t at, struct configuration *configuration) {
    const int is_tiled = !grid->model || grid->model->rules->is_tiled;
    const vp_geometry geometry = grid->model ? grid->model->config.geometry : vp_geometry_default();
    struct knob_values *knobs = &configuration->knobs;
    int32_t crops = 0;
    if (!set_listed(grid->settings, KNOB_TOKENS, at, knobs) && !set_listed(grid->settings, KNOB_TIER, at, knobs)) {
        if (grid->image_knob) {
            knob_set_text(knobs, KNOB_IMAGE, grid->image_knob);
            knob_set_number(knobs, KNOB_IMAGE, grid->image_values[at]);
        } else if (grid->model && is_tiled) knob_set_text(knobs, KNOB_TIER, vp_tier_at((int32_t)at)->name);
    }
    if (knob_tier(knobs)) knobs->max_crops = knob_tier(knobs)->max_crops;
    else if (!(configuration->variant && configuration->variant->family) && knob_is_set(knobs, KNOB_TOKENS) && is_tiled
             && vp_select_crops(&geometry, (int32_t)knob_number(knobs, KNOB_TOKENS), &crops) == VP_OK)
        knobs->max_crops = crops;
}
/* Sets a configuration of the engine, except its image size. at: its index in the grid, and among those of its point.
 * Returns 0 or an exit code. */
static int set_model_knobs(const struct grid *grid, const int32_t *at, size_t place,
                           struct configuration *configuration) {
    const vp_model_config *config = &grid->model->config;
    struct knob_values *knobs = &configuration->knobs;
    int32_t *blocks = resize(NULL, (size_t)config->block_count, sizeof *blocks), count;
    for (int32_t i = GRID_SIZE + 1; i < grid->width; i++)
        if (!set_listed(grid->settings, grid->knobs[i], (size_t)at[i], knobs))
            knob_set_of_model(knobs, grid->knobs[i], config);
    count = (int32_t)knob_number(knobs, KNOB_BLOCKS);
    int code = model_choose_blocks(grid->settings->importance_scores_file, grid->model, count, blocks);
    if (!code) knob_set_list(knobs, KNOB_BLOCKS, blocks, count);
    free(blocks);
    for (int knob = KNOB_EACH_END; knob-- > KNOB_EACH;) {
        const size_t values = (size_t)list_count(grid->settings, knob), value = place % values;
        place /= values;
        if (knob == KNOB_WEIGHTS) knob_set_text(knobs, knob, grid->plan->weights[configuration->weights_at = value]);
        else set_listed(grid->settings, knob, value, knobs);
    }
    return code;
}
/* The number of image sizes without --image_knob. Without a list: all tiers of a model with tiers, otherwise unchanged
 * images. */
static int32_t size_count(const struct grid *grid) {
    const int has_tiers = grid->model && grid->model->rules->is_tiled;
    int32_t tiers = 0;
    if (grid->settings->lists[KNOB_TOKENS]) return list_count(grid->settings, KNOB_TOKENS);
    if (grid->settings->lists[KNOB_TIER] || !has_tiers) return list_count(grid->settings, KNOB_TIER);
    while (vp_tier_at(tiers)) tiers++;
    return tiers;
}
/* Finds the dimensions. A knob that the model does not set itself is a dimension only with a list, so that grids
 * without the list do not change. */
static int count_grid(struct grid *grid) {
    const struct text_list *names = &grid->plan->variants.models;
    const int needs_rule = grid->settings->lists[KNOB_TOKENS] && !grid->settings->servers.family;
    for (size_t i = 0; needs_rule && i < names->count; i++) {
        const vp_family_preset *preset = vp_family_find(names->items[i]);
        if (!preset || strcmp(preset->name, "molmo") != 0)
            return complain(EXIT_USAGE, "--vision_tokens_list needs --family NAME, the model family whose token rule "
                                        "the server follows (vlmprof tile --list_families lists them)");
    }
    int code = check_lists(grid->settings, grid->model);
    grid->counts[grid->width++] = size_count(grid);
    for (int knob = 0; knob < KNOB_EACH_END; knob++) {
        if (grid->settings->lists[knob]) grid->plan->named |= 1u << knob;
        if (knob >= KNOB_EACH || KNOBS[knob].of != KNOB_OF_ENGINE) continue;
        if (!KNOBS[knob].in_config && !grid->settings->lists[knob]) continue;
        grid->knobs[grid->width] = knob;
        grid->counts[grid->width++] = list_count(grid->settings, knob);
    }
    if (!grid->model) grid->counts[GRID_VARIANT] = (int32_t)grid->plan->variants.count;
    if (!code && grid->model) code = check_sizes(grid);
    if (!code && grid->model) code = read_each(grid);
    if (grid->image_count) grid->counts[GRID_SIZE] = (int32_t)grid->image_count;
    return code ? code : grid_points(grid);
}
static int plan_grid(const struct model *model, struct plan *plan) {
    struct grid grid = {.settings = &plan->settings, .model = model, .plan = plan, .each = 1};
    int code = count_grid(&grid);
    const size_t count = code ? 0 : plan->set_count * grid.count * grid.each;
    plan->configurations = zeroed(count + 1, sizeof *plan->configurations);
    for (size_t i = 0; !code && i < count; i++) {
        const int32_t *at = grid.index + i / grid.each % grid.count * (size_t)grid.width;
        struct configuration *configuration = &plan->configurations[plan->configuration_count++];
        configuration->set = &plan->sets[i / grid.each / grid.count];
        configuration->in_index = -1;
        plan->point_count += configuration->set->count;
        if (!model) configuration->variant = &plan->variants.items[at[GRID_VARIANT]];
        set_size(&grid, (size_t)at[GRID_SIZE], configuration);
        if (!model) {
            knob_copy_servers(&configuration->knobs, &configuration->variant->values);
            name_configuration(plan, configuration, 0);
        } else if ((code = set_model_knobs(&grid, at, i % grid.each, configuration)) == 0)
            plan_configuration(model, plan, configuration);
        if (!plan->settings.servers.launch.command)
            knobs_set_own(&plan->variants.server_knobs, (size_t)(configuration->set - plan->sets),
                          &configuration->knobs);
    }
    FREE_ALL(grid.image_knob, grid.image_values, grid.index);
    return code;
}

/* The id of a record, as in the metadata of results, or else of its sample. Returns NULL after a message. */
static char *id_of_sample(const struct model *model, const struct dataset *set, size_t index) {
    struct text_buffer text = {NULL, 0, 0};
    struct parsed scratch = {{NULL, NULL, 0}, NULL, 0};
    struct sample sample;
    vp_json_writer writer;
    char *id = NULL;
    if (dataset_sample(set, model, index, &sample)) return NULL;
    vp_json_writer_init_sink(&writer, text_sink, &text, 0);
    PUT(&writer, KEY_OBJECT(NULL), KEY("id", sample.id));
    put_metadata(&writer, &scratch, &sample);
    PUT(&writer, END_OBJECT);
    if (vp_json_finish(&writer) == VP_OK && parse_json(&scratch, text.data, text.bytes, NULL) == VP_OK) {
        const uint32_t metadata = vp_json_get(&scratch.json, 0, "metadata");
        id = json_text(&scratch.json,
                       vp_json_get(&scratch.json, has_value(&scratch.json, metadata, "id") ? metadata : 0, "id"));
    }
    sample_free(&sample);
    FREE_ALL(text.data, scratch.nodes);
    return id;
}
/* Complains if a data set's samples are not those of the first. Returns 0 or an exit code. */
static int check_same_ids(const struct model *model, const struct dataset *first, const struct dataset *set) {
    int code = 0;
    if (set->count != first->count)
        return complain(EXIT_INPUT, "--knob: %s has %zu samples, %s %zu; expected the same ids in the same order",
                        first->path, first->count, set->path, set->count);
    for (size_t i = 0; i < set->count && !code && set != first; i++) {
        char *one = id_of_sample(model, first, i), *other = id_of_sample(model, set, i);
        if (!one || !other) code = EXIT_INPUT;
        else if (strcmp(one, other))
            code = complain(EXIT_INPUT, "--knob: %s has id %.80s where %s has %.80s; expected the same ids in the same "
                                        "order", first->path, one, set->path, other);
        FREE_ALL(one, other);
    }
    return code;
}

/* ---- a policy */
struct configuration *plan_run_of(const struct plan *plan, struct configuration *configuration, size_t index) {
    if (!plan->choices) return configuration;
    return &plan->runs[configuration == plan->configurations ? plan->choices[index].run : plan->run_count - 1];
}
/* Reads --choices for the samples. Returns 0 or an exit code. */
static int read_choices(const struct model *model, const struct plan *plan, struct choices *choices) {
    const struct dataset *set = plan->sets;
    const char *path = plan->settings.choices_file;
    struct choice_config *configs = resize(NULL, plan->configuration_count + 1, sizeof *configs);
    char **ids = zeroed(set->count + 1, sizeof *ids);
    size_t lacking = 0;
    int code = 0;
    *choices = (struct choices){ids, set->count, configs, plan->configuration_count, NULL, NULL, 0};
    for (size_t c = 0; c < plan->configuration_count; c++)
        configs[c] = (struct choice_config){&plan->configurations[c].knobs, plan->configurations[c].file_name};
    for (size_t i = 0; i < set->count && !code; i++)
        if (!(ids[i] = id_of_sample(model, set, i))) code = EXIT_INPUT;
    if (!code) code = choices_read(path, choices);
    for (size_t i = 0; i < set->count && !code; i++) {
        if (choices->of[i] >= 0) continue;
        choices->of[i] = choices->of[set->count]; /* static, if there is a line for it */
        lacking++;
        if (choices->of[i] < 0 || lacking == set->count)
            code = complain(EXIT_INPUT, "--choices: %s: sample %.80s has no line; all samples of the sweep need one",
                            path, ids[i]);
    }
    if (lacking && !code)
        print_note("vlmprof: --choices: %zu of %zu samples have no line: they run under the static configuration\n",
                   lacking, set->count);
    for (size_t i = 0; i < set->count; i++) free(ids[i]);
    FREE_ALL(configs, ids);
    return code;
}
static void configuration_free(struct configuration *configuration) {
    knob_values_free(&configuration->knobs);
    FREE_ALL(configuration->file_name, configuration->grid_name, configuration->shapes, configuration->dropped);
}
static struct configuration configuration_copy(const struct configuration *from) {
    struct configuration copy = *from;
    memset(&copy.knobs, 0, sizeof copy.knobs);
    knob_keep_common(&copy.knobs, &from->knobs, 1);
    copy.file_name = copy_text(from->file_name, strlen(from->file_name));
    return copy;
}
/* Keeps the configurations of the grid that a sample has, as plan->runs, and replaces the grid by the policy, whose
 * knobs are those that its samples have in common. The name is that of the file of choices. The best single
 * configuration, if the file has it, becomes the last run and a configuration of its own. */
static void become_policy(struct plan *plan, const struct choices *choices) {
    const char *path = plan->settings.choices_file, *slash = strrchr(path, '/'), *dot;
    char *name = copy_text(slash ? slash + 1 : path, strlen(slash ? slash + 1 : path));
    struct configuration *policy = zeroed(2, sizeof *policy), fixed = {0};
    const int32_t fixed_at = choices->of[choices->count];
    struct text_buffer file_name = {NULL, 0, 0}, value = {NULL, 0, 0};
    size_t weights_count = 0;
    vp_json_writer writer;
    if ((dot = strrchr(name, '.')) != NULL && dot > name) name[dot - name] = 0;
    text_add_format(&file_name, "policy-%s.json", name);
    vp_json_writer_init_sink(&writer, text_sink, &value, 0);
    json_lossy(&writer, name);
    plan->choices = zeroed(choices->count + 1, sizeof *plan->choices);
    plan->runs = plan->configurations;
    plan->max_sequence = 0;
    plan->max_views = 1;
    if (fixed_at >= 0) fixed = configuration_copy(&plan->configurations[fixed_at]);
    for (size_t c = 0; c < plan->configuration_count; c++) {
        struct configuration *run = &plan->runs[plan->run_count];
        size_t uses = 0;
        for (size_t i = 0; i < choices->count; i++) {
            if (choices->of[i] != (int32_t)c) continue;
            plan->choices[i] = (struct plan_choice){plan->run_count, choices->overhead_ms[i]};
            uses++;
        }
        if (!uses) {
            configuration_free(&plan->configurations[c]);
            continue;
        }
        *run = plan->configurations[c];
        run->grid_name = run->file_name;
        run->file_name = copy_text(file_name.data, file_name.bytes);
        knob_keep_common(&policy->knobs, &run->knobs, !plan->run_count++);
    }
    if (fixed_at >= 0) plan->runs[plan->run_count++] = fixed;
    for (const struct configuration *run = plan->runs; run < plan->runs + plan->run_count; run++) {
        if (run->need_sequence > plan->max_sequence) plan->max_sequence = run->need_sequence;
        if (run->need_views > plan->max_views) plan->max_views = run->need_views;
    }
    for (size_t i = 0, is_used; i < plan->weights_count; i++, weights_count += is_used) {
        is_used = 0;
        for (size_t r = 0; r < plan->run_count; r++) {
            if (plan->runs[r].weights_at != i) continue;
            plan->runs[r].weights_at = weights_count;
            is_used = 1;
        }
        plan->weights[weights_count] = plan->weights[i];
    }
    plan->weights_count = weights_count;
    knob_set_text(&policy->knobs, knob_own("policy", NULL), vp_json_finish(&writer) == VP_OK ? value.data : """");
    policy->set = plan->sets;
    policy->file_name = file_name.data;
    policy->in_index = -1;
    plan->configurations = policy;
    plan->configuration_count = 1;
    if (fixed_at >= 0) policy[plan->configuration_count++] = configuration_copy(&fixed);
    plan->point_count = choices->count * plan->configuration_count;
    FREE_ALL(name, value.data);
}
static int plan_choose(const struct model *model, struct plan *plan) {
    struct choices choices;
    if (plan->set_count > 1)
        return complain(EXIT_USAGE, "--choices needs a single --data file: a --knob with a file for each value cannot "
                                    "be chosen per sample; fix it, such as policy --at NAME=VALUE");
    const int code = read_choices(model, plan, &choices);
    if (!code) become_policy(plan, &choices);
    FREE_ALL(choices.of, choices.overhead_ms);
    return code;
}

uint64_t plan_hash_sets(uint64_t hash, const struct plan *plan) {
    for (size_t i = 0; plan->choices && i < plan->sets->count; i++) {
        struct text_buffer text = {NULL, 0, 0};
        vp_json_writer writer;
        vp_json_writer_init_sink(&writer, text_sink, &text, 0);
        PUT(&writer, KEY_OBJECT(NULL), KEY("overhead_ms", plan->choices[i].overhead_ms));
        knob_put_plan(&writer, &plan->runs[plan->choices[i].run].knobs);
        PUT(&writer, END_OBJECT);
        if (vp_json_finish(&writer) == VP_OK) hash = hash_text(hash, text.data);
        free(text.data);
    }
    if (plan->choices) hash = hash_text(hash, plan->configurations->file_name);
    for (size_t i = 0; i < plan->set_count; i++) {
        hash = hash_text(hash_text(hash, plan->sets[i].task), vp_score_metric_of(plan->sets[i].metric)->name);
        hash = hash_number(hash_number(hash, plan->sets[i].new_tokens), (int64_t)plan->sets[i].hash);
    }
    return hash;
}
int plan_make(const struct model *model, struct plan *plan) {
    const struct plan_settings *settings = &plan->settings;
    const struct option_value *data = settings->files;
    int code;
    plan->max_views = 1;
    code = model ? own_knobs_add(&settings->servers, &plan->variants.server_knobs)
                 : variants_make(&settings->servers, &plan->variants);
    const size_t values = knobs_combinations(&plan->variants.server_knobs);
    const int follows = follows_files(plan);
    if (code) return code;
    if (follows && values != data->count)
        return complain(EXIT_USAGE, "--knob has %zu values, but there %s %zu data file%s: give a file for each value, "
                                    "in order, or --server", values, data->count == 1 ? "is" : "are", data->count,
                        data->count == 1 ? "" : "s");
    plan->sets = zeroed(data->count, sizeof *plan->sets);
    for (size_t i = 0; i < data->count; i++) {
        struct dataset *dataset = &plan->sets[plan->set_count++];
        dataset->path = data->items[i];
        if ((code = dataset_load(&settings->data, model, dataset)) != 0
            || (code = dataset_check_usable(dataset, model)) != 0)
            return code;
        if (follows && !i && !settings->data.dataset_name)
            plan->settings.data.dataset_name = dataset->defaults ? dataset->defaults->name : dataset->task;
        if (follows && (code = check_same_ids(model, plan->sets, dataset)) != 0) return code;
        if (dataset->new_tokens > plan->new_tokens) plan->new_tokens = dataset->new_tokens;
        for (size_t k = 0; k < i && !follows; k++)
            if (!strcmp(dataset->task, plan->sets[k].task))
                return complain(EXIT_USAGE, "--data: %s and %s are both called %s; sweep them into separate folders",
                                plan->sets[k].path, dataset->path, dataset->task);
    }
    code = plan_grid(model, plan);
    if (!code && settings->choices_file) return plan_choose(model, plan);
    plan->runs = plan->configurations;
    plan->run_count = plan->configuration_count;
    return code;
}
/* Adds up the bytes of a set of engines, given as a bit set of indices, and finds the smallest engine outside the
 * set. */
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
    for (size_t i = 0; i < plan->configuration_count; i++) configuration_free(&plan->configurations[i]);
    for (size_t i = 0; i < plan->run_count && plan->choices; i++) configuration_free(&plan->runs[i]);
    if (plan->choices) free(plan->runs);
    variants_free(&plan->variants);
    FREE_ALL((void *)plan->weights, plan->sets, plan->configurations, plan->choices);
}
