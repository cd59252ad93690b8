/* plan_cost.c: sweep --plan: the work and memory of a sweep as the engine counts them, its time as an earlier journal
 * gives it, and the differences that its samples can resolve. */
#include "sweep/sweep.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "measure/provenance.h"
#include "measure/engine.h"
#include "sweep/ranks.h"
#include "sweep/result_gather.h"
#include "vlmprof.h"
#include "vlmprof_analysis.h"
#include "vlmprof_engine.h"
#include "vlmprof_file.h"
#include "vlmprof_image.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"

#include <math.h>

/* ---- what the engine of one kind of weights needs; it is opened only to count */
struct needs {
    const char *weights;
    struct session counter;
    char reason[LINE_BYTES];           /* why nothing can be counted; "" if it can */
    uint64_t memory_bytes, free_bytes; /* 0: not known */
};
static void needs_find(const vp_engine_options *asked, const struct model *model, const struct plan *plan,
                       struct needs *needs) {
    const int32_t sequence = plan->max_sequence > 0 ? plan->max_sequence : 1;
    vp_engine_options settings = engine_options_for(asked, model, sequence, plan->max_views);
    vp_error error = {VP_OK, -1, "", ""};
    settings.weights = weights_of(needs->weights);
    settings.counts_only = 1;
    needs->counter.model = model;
    vp_result result = engine_begin(&settings, &needs->counter.engine, &error);
    if (result != VP_OK) {
        error_line(needs->reason, sizeof needs->reason, result, &error);
        return;
    }
    needs->memory_bytes = vp_engine_bytes(needs->counter.engine);
    needs->free_bytes = vp_engine_free_bytes(needs->counter.engine);
}

/* ---- the forecast of a configuration */
struct forecast {
    int64_t crops, vision_tokens, layouts; /* sums over the samples with an image */
    int64_t failing;                       /* samples that will fail */
    int64_t count;                         /* samples that can run */
    int64_t longest;                       /* longest sequence of these samples */
    double kept, cache_bytes; /* with --prune_list: sums over these of the kept image tokens and their KV caches */
    double flops, bytes;      /* sums over these of the work of one run */
    /* what the journals in output_dir contain */
    double measured_ns, squares; int64_t timed_count; /* sums over timed runs of the time and of its square */
    int64_t runs_measured, points_done, points_failed;
    int64_t compared; /* points that are compared with the baseline */
};
/* The work of passes of one shape: the samples of a configuration have few shapes. */
struct shape_cost { int32_t rows, cols, views, sequence; uint64_t images; double flops, bytes; };
struct shape_costs { struct shape_cost *items; size_t count; };
/* Adds the counted work of a pass. If it cannot be counted, needs->reason says why. */
static void add_work(struct needs *needs, const struct pass_input *input, struct shape_costs *known,
                     struct forecast *forecast) {
    struct shape_cost shape = {.sequence = sequence_of(input), .images = HASH_START};
    vp_error error = {VP_OK, -1, "", ""};
    vp_stage_times work;
    size_t at = 0;
    if (needs->reason[0]) return;
    if (layout_of(input)) {
        shape.rows = layout_of(input)->tiling.rows;
        shape.cols = layout_of(input)->tiling.cols;
        shape.views = layout_of(input)->views;
    }
    for (int32_t i = 0; input->cuts && input->cuts->count > 1 && i < input->cuts->count; i++)
        shape.images = hash_bytes(shape.images, (const char *)&input->cuts->views[i], sizeof *input->cuts->views);
    for (; at < known->count; at++) {
        const struct shape_cost *item = &known->items[at];
        if (item->rows == shape.rows && item->cols == shape.cols && item->views == shape.views
            && item->sequence == shape.sequence && item->images == shape.images) break;
    }
    if (at == known->count) {
        vp_result result = request_count(&needs->counter, input, &work, &error);
        if (result != VP_OK) {
            error_line(needs->reason, sizeof needs->reason, result, &error);
            return;
        }
        for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
            shape.flops += (double)work.flops[stage];
            shape.bytes += (double)work.bytes[stage];
        }
        *ADDED(known->items, known->count) = shape;
    }
    forecast->flops += known->items[at].flops;
    forecast->bytes += known->items[at].bytes;
}
/* Returns 1 if the plan specifies which image tokens are kept. */
static int is_pruned(const struct plan *plan) { return plan->named >> KNOB_PRUNE & 1; }
/* Adds the effect of pruning on a sample. Returns 0 if that cannot be computed. */
static int forecast_pruning(const struct needs *needs, const struct pass_input *input, struct forecast *forecast) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_pruned pruned;
    if (request_pruned(&needs->counter, input, weights_of(needs->weights), &pruned, &error) != VP_OK) return 0;
    if (input->prune.how.method != VP_PRUNE_NONE) forecast->kept += pruned.kept_tokens;
    else if (layout_of(input)) forecast->kept += layout_of(input)->feature_tokens;
    forecast->cache_bytes += (double)pruned.cache_bytes;
    return 1;
}
/* Returns 1 if the sample does not run with it. */
static int is_others(const struct plan *plan, const struct configuration *run, size_t sample) {
    return run->grid_name && &plan->runs[plan->choices[sample].run] != run;
}
/* Adds up a configuration's samples. */
static void forecast_configuration(const struct plan *plan, const struct model *model,
                                   const struct configuration *configuration, struct needs *needs,
                                   struct forecast *forecast) {
    struct shape_costs known = {NULL, 0};
    struct cuts storage = {0};
    for (size_t i = 0; i < configuration->set->count; i++) {
        if (is_others(plan, configuration, i)) continue;
        const struct entry *entry = &configuration->set->samples[i];
        char reason[LINE_BYTES];
        const struct cuts *cuts = configuration_cuts(model, configuration, entry, &storage, reason, sizeof reason);
        const struct sample sample = {.tokens = {NULL, entry->text_count, entry->no_bos}};
        struct pass_input input;
        configuration_input(plan, configuration, &sample, cuts, NULL, &input);
        if (cuts) {
            forecast->layouts++;
            forecast->crops += cuts->whole.crops;
            forecast->vision_tokens += cuts->whole.feature_tokens;
        }
        if (reason[0] || positions_of(&input) > model->config.max_positions
            || (is_pruned(plan) && !forecast_pruning(needs, &input, forecast))) {
            forecast->failing++;
            continue;
        }
        if (sequence_of(&input) > forecast->longest) forecast->longest = sequence_of(&input);
        forecast->count++;
        add_work(needs, &input, &known, forecast);
    }
    free(known.items);
    cuts_free(&storage);
}

/* Tokens of all images of a sample by a family's rule; -1 if not known. */
static int64_t family_tokens(const vp_family *family, const struct image_px *sizes, int32_t count) {
    int64_t sum = 0;
    for (int32_t i = 0; i < count; i++) {
        vp_vision_count tokens;
        if (vp_family_count(family, sizes[i].width_px, sizes[i].height_px, &tokens, NULL) != VP_OK) return -1;
        sum += tokens.total_tokens;
    }
    return sum;
}
/* Adds up the samples that a configuration can send to a server. The rule of --family gives the image tokens if images
 * are sent unchanged; finding the size for a number of tokens takes too long for a forecast. */
static void forecast_served(const struct plan *plan, const struct configuration *configuration,
                            struct forecast *forecast) {
    const struct variant *variant = configuration->variant;
    for (size_t i = 0; i < configuration->set->count; i++) {
        const struct entry *entry = &configuration->set->samples[i];
        if (is_others(plan, configuration, i)) continue;
        if (entry->reason) forecast->failing++;
        else forecast->count++;
        if (!entry->image_count || entry->reason || !variant->family || knob_is_set(&configuration->knobs, KNOB_TOKENS))
            continue;
        int64_t tokens = family_tokens(variant->family, entry->sizes, entry->image_count);
        forecast->layouts += tokens >= 0;
        forecast->vision_tokens += tokens > 0 ? tokens : 0;
    }
}

/* Adds the runs of a configuration's points to its forecast; the times are those of closed points. Returns 0 or an exit
 * code. */
static int add_measured(struct journal_index *index, const struct index_configuration *configuration,
                        struct forecast *forecast) {
    const struct index_set *set = &index->sets[configuration->set];
    struct measured measured = {0};
    int code = 0;
    for (size_t i = 0; i < set->count && !code; i++) {
        const struct point_line point = index_point(set->entries[i], configuration);
        forecast->runs_measured += point.runs;
        forecast->points_done += point.state == POINT_DONE;
        forecast->points_failed += point.state == POINT_FAILED;
        if (point.state == POINT_OPEN) continue;
        code = measured_read(index, configuration, set->entries[i], &measured);
        forecast->compared += !code && measured.has_fidelity;
        for (int32_t run = 0; run < measured.count && !code; run++) {
            const double ns = (double)(measured.runs[run].total_ns - measured.runs[run].overhead_ns);
            forecast->measured_ns += ns;
            forecast->squares += ns * ns;
            forecast->timed_count++;
        }
    }
    measured_free(&measured);
    return code;
}
/* Adds the runs of all journals in output_dir, if there is one. Journals of another plan add no runs; `note` then
 * says so. Returns 0 or an exit code. */
static int read_journals(const struct sweep *sweep, const struct plan *plan, struct forecast *forecast, char *note,
                         size_t capacity) {
    const char *folder = sweep->settings.output_dir;
    struct journal_index index = {0};
    char wanted[32];
    int code = folder && is_folder(folder) ? ranks_read_folder(&index, folder, NULL) : 0;
    snprintf(wanted, sizeof wanted, "%016llx", (unsigned long long)plan->fingerprint);
    if (!code && index.file_count && strcmp(index.plan, wanted) != 0) {
        struct text_buffer words = {NULL, 0, 0};
        char *ours = options_json(sweep->options);
        if (!index_read_line(&index, index.configurations[0].head_file, index.configurations[0].head_at))
            add_plan_difference(&words, &index.scratch.json, vp_json_get(&index.scratch.json, 0, "options"), ours);
        snprintf(note, capacity, "%.400s contains journals of another plan:%.200s; the sweep would reject it", folder,
                 words.data ? words.data : "");
        FREE_ALL(words.data, ours);
    } else if (!code) code = index_sort(&index);
    for (size_t i = 0; i < plan->configuration_count && !code && !note[0]; i++) {
        const int32_t at = index_configuration_named(&index, plan->configurations[i].file_name);
        if (at >= 0) code = add_measured(&index, &index.configurations[at], &forecast[i]);
    }
    index_free(&index);
    return code;
}

/* All that --plan prints. */
struct estimate {
    const struct sweep *sweep;
    const struct model *model; /* NULL: servers */
    const struct plan *plan;
    const struct baseline *baseline;
    struct needs *needs; size_t needs_count; /* one per weights of the plan; none for servers */
    struct forecast *configurations;
    int64_t runs_measured, runs_left;
    int64_t follow_left, baseline_left; /* untimed passes that follow a baseline's answers, or give them */
    double seconds;                     /* time of the remaining runs and passes; NaN: not known */
    size_t fewest;                      /* samples of the smallest data set */
    double variation; /* largest variation of T_total over the measured runs of a configuration; NaN: not known */
    vp_resolution resolution;
    char note[LINE_BYTES];
};
/* Share of questions that only one of two configurations answers correctly, as on VQA v2; at most 0.5. */
static const double PLAN_DISCORDANCE = 0.2;
enum { PLAN_SAMPLES_ENOUGH = 500 };

/* T_total of one run in ms, mean over the measured ones; NaN: none was measured. */
static double configuration_ms(const struct estimate *estimate, size_t index) {
    const struct forecast *forecast = &estimate->configurations[index];
    return forecast->timed_count ? forecast->measured_ns / (double)forecast->timed_count / 1e6 : (double)NAN;
}
/* The number of closed points, except points known to have failed. */
static int64_t points_closed(const struct forecast *forecast) {
    const int64_t failed = forecast->points_failed - forecast->failing;
    return forecast->points_done + (failed > 0 ? failed : 0);
}
/* Seconds that this many runs of a configuration take; with a request rate, the arrivals decide. */
static double runs_seconds(const struct estimate *estimate, size_t index, int64_t runs) {
    const struct configuration *configuration = &estimate->plan->configurations[index];
    const char *rate = knob_text(&configuration->knobs, KNOB_RATE),
               *streams = knob_text(&configuration->knobs, KNOB_CONCURRENCY);
    const double blocks = ceil((double)runs / (double)configuration->set->count),
                 ramps = rate || streams ? 2 * estimate->sweep->settings.ramp_s * blocks : 0;
    if (rate) return ramps + (double)runs / strtod(rate, NULL);
    return ramps + configuration_ms(estimate, index) / 1e3 * (double)runs / (streams ? strtod(streams, NULL) : 1);
}
static int64_t configuration_runs_left(const struct estimate *estimate, size_t index) {
    const struct forecast *forecast = &estimate->configurations[index];
    int64_t all = forecast->count * estimate->plan->settings.run_count,
            closed = points_closed(forecast) * estimate->plan->settings.run_count;
    int64_t done = forecast->runs_measured > closed ? forecast->runs_measured : closed;
    return done < all ? all - done : 0;
}
/* Counts the work of all configurations. */
static void count_configurations(struct estimate *estimate) {
    estimate->fewest = SIZE_MAX;
    for (size_t i = 0; i < estimate->plan->run_count; i++) {
        const struct configuration *configuration = &estimate->plan->runs[i];
        struct forecast *forecast =
            &estimate->configurations[!estimate->plan->choices ? i : configuration->grid_name ? 0 : 1];
        if (estimate->model)
            forecast_configuration(estimate->plan, estimate->model, configuration,
                                   &estimate->needs[configuration->weights_at], forecast);
        else forecast_served(estimate->plan, configuration, forecast);
        if (configuration->set->count < estimate->fewest) estimate->fewest = configuration->set->count;
    }
}
/* Adds what the journals in output_dir have measured. Returns 0 or an exit code. */
static int add_journals(struct estimate *estimate) {
    int code = read_journals(estimate->sweep, estimate->plan, estimate->configurations,
                             estimate->note, sizeof estimate->note);
    estimate->variation = (double)NAN;
    for (size_t i = 0; i < estimate->plan->configuration_count; i++) {
        const struct forecast *forecast = &estimate->configurations[i];
        const double count = (double)forecast->timed_count, mean = forecast->measured_ns / count;
        estimate->runs_measured += forecast->runs_measured;
        if (forecast->timed_count < 2) continue;
        double spread = sqrt(fmax(0, forecast->squares / count - mean * mean)) / mean;
        if (!(spread <= estimate->variation)) estimate->variation = spread;
    }
    return code;
}
/* With --baseline each point runs once more to follow the baseline's answer, which takes about as long as a run. If the
 * baseline is in this grid, it also runs once more before that, for each sample that has such a point. */
static void add_baseline_passes(struct estimate *estimate) {
    const struct plan *plan = estimate->plan;
    for (size_t set = 0; estimate->baseline->of && set < plan->set_count; set++) {
        const struct configuration *first = estimate->baseline->of[set].configuration;
        int64_t samples = 0;
        for (size_t i = 0; i < plan->configuration_count; i++) {
            const struct forecast *forecast = &estimate->configurations[i];
            const int64_t closed = points_closed(forecast),
                          left = forecast->count - (closed > forecast->compared ? closed : forecast->compared);
            if (plan->configurations[i].set != &plan->sets[set] || left <= 0) continue;
            estimate->follow_left += left;
            estimate->seconds += configuration_ms(estimate, i) / 1e3 * (double)left;
            if (left > samples) samples = left;
        }
        if (!first || !samples) continue;
        estimate->baseline_left += samples;
        estimate->seconds += configuration_ms(estimate, (size_t)(first - plan->configurations)) / 1e3 * (double)samples;
    }
}
/* Memory for the logits of a baseline's longest answer, used while a sample is compared; 0 if there are none. */
static double baseline_bytes(const struct estimate *estimate) {
    int32_t tokens = 0;
    for (size_t set = 0; estimate->model && estimate->baseline->of && set < estimate->plan->set_count; set++)
        if (estimate->baseline->of[set].configuration && estimate->plan->sets[set].new_tokens > tokens)
            tokens = estimate->plan->sets[set].new_tokens;
    return (double)tokens * (double)estimate->baseline->width * sizeof(float);
}
/* Fills the estimate. Returns 0 or an exit code. */
static int look_ahead(struct estimate *estimate) {
    int code;
    count_configurations(estimate);
    if ((code = add_journals(estimate)) != 0) return code;
    estimate->seconds = 0;
    for (size_t i = 0; i < estimate->plan->configuration_count; i++) {
        int64_t left = configuration_runs_left(estimate, i);
        estimate->runs_left += left;
        if (left) estimate->seconds += runs_seconds(estimate, i, left);
    }
    add_baseline_passes(estimate);
    estimate->resolution.accuracy = estimate->resolution.mean = estimate->resolution.p50 = (double)NAN;
    vp_statistics_resolution(estimate->fewest, PLAN_DISCORDANCE,
                             isfinite(estimate->variation) ? estimate->variation : 0, &estimate->resolution);
    if (!isfinite(estimate->variation)) estimate->resolution.mean = estimate->resolution.p50 = (double)NAN;
    return 0;
}
/* Why the work cannot be counted; "" if it can. */
static const char *no_count(const struct estimate *estimate) {
    for (size_t i = 0; i < estimate->needs_count; i++)
        if (estimate->needs[i].reason[0]) return estimate->needs[i].reason;
    return "";
}
/* Memory for all engines, which are open at once; 0: not known. */
static uint64_t all_bytes(const struct estimate *estimate) {
    uint64_t sum = 0;
    for (size_t i = 0; i < estimate->needs_count; i++) {
        if (!estimate->needs[i].memory_bytes) return 0;
        sum += estimate->needs[i].memory_bytes;
    }
    return sum;
}
/* The source of the expected time: "measured", "arrivals" (nothing is measured yet), "nothing left" or "none". */
static const char *time_source(const struct estimate *estimate) {
    if (!estimate->runs_left && !estimate->runs_measured) return "nothing left";
    return !isfinite(estimate->seconds) ? "none" : estimate->runs_measured ? "measured" : "arrivals";
}

static void put_plan_data(vp_json_writer *writer, const struct estimate *estimate) {
    PUT(writer, KEY_ARRAY("data"));
    for (size_t set = 0; set < estimate->plan->set_count; set++)
        dataset_put(writer, &estimate->plan->sets[set], estimate->model);
    vp_json_end_array(writer);
}
static void put_plan_configuration(vp_json_writer *writer, const struct estimate *estimate, size_t index) {
    const struct configuration *configuration = &estimate->plan->configurations[index];
    const struct forecast *forecast = &estimate->configurations[index];
    double layouts = forecast->layouts ? (double)forecast->layouts : (double)NAN,
           count = forecast->count ? (double)forecast->count : (double)NAN;
    PUT(writer, KEY_OBJECT(NULL), KEY("file_name", configuration->file_name),
        KEY("dataset_name", configuration->set->task));
    knob_put_plan(writer, &configuration->knobs);
    PUT(writer, KEY("num_samples", configuration->set->count), KEY("num_failing", forecast->failing),
        KEY("selected_crops_mean", estimate->model ? (double)forecast->crops / layouts : (double)NAN),
        KEY("actual_vision_tokens_mean", (double)forecast->vision_tokens / layouts),
        KEY_KNOWN("total_sequence_length_max", estimate->model, forecast->longest));
    if (is_pruned(estimate->plan))
        PUT(writer, KEY("kept_vision_tokens_mean", forecast->kept / count),
            KEY("kv_cache_bytes_mean", forecast->cache_bytes / count));
    PUT(writer, KEY("flops_mean", forecast->flops > 0 ? forecast->flops / count : (double)NAN),
        KEY("bytes_mean", forecast->bytes > 0 ? forecast->bytes / count : (double)NAN),
        KEY("T_total_measured", configuration_ms(estimate, index)), KEY("num_runs_measured", forecast->runs_measured),
        KEY("num_runs_left", configuration_runs_left(estimate, index)), END_OBJECT);
}
static int print_plan_json(const struct estimate *estimate) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 1);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-plan-1"),
        KEY("model", estimate->model ? estimate->model->name : NULL),
        KEY_BOOL("synthetic", estimate->model && estimate->model->synthetic));
    put_plan_data(&writer, estimate);
    PUT(&writer, KEY_ARRAY("configurations"));
    for (size_t i = 0; i < estimate->plan->configuration_count; i++) put_plan_configuration(&writer, estimate, i);
    PUT(&writer, END_ARRAY, KEY("num_points", estimate->plan->point_count),
        KEY("num_runs_per_sample", estimate->plan->settings.run_count),
        KEY("num_runs_measured", estimate->runs_measured), KEY("num_runs_left", estimate->runs_left));
    if (estimate->baseline->of)
        PUT(&writer, KEY("num_follow_passes_left", estimate->follow_left),
            KEY("num_baseline_passes_left", estimate->baseline_left), KEY("baseline_bytes", baseline_bytes(estimate)));
    PUT(&writer, KEY("expected_seconds", estimate->seconds), KEY("expected_from", time_source(estimate)),
        KEY("engine_bytes", all_bytes(estimate) ? (double)all_bytes(estimate) : (double)NAN));
    PUT(&writer, KEY_OBJECT("resolution"), KEY("num_samples", estimate->fewest), KEY("discordance", PLAN_DISCORDANCE),
        KEY("accuracy", estimate->resolution.accuracy), KEY("T_total_variation", estimate->variation),
        KEY("T_total_mean", estimate->resolution.mean), KEY("T_total_p50", estimate->resolution.p50), END_OBJECT,
        KEY_BOOL("too_few_samples", estimate->fewest < PLAN_SAMPLES_ENOUGH),
        KEY("note", estimate->note[0] ? estimate->note : NULL));
    put_options(&writer, "config", estimate->sweep->options);
    vp_json_end_object(&writer);
    return json_end(&writer);
}

/* A cell of the grid: "-" if the number is not known. */
static const char *plan_cell(const char *format, double value, char out[32]) {
    snprintf(out, 32, isfinite(value) ? format : "-", value);
    return out;
}
static void print_plan_grid(const struct estimate *estimate) {
    const int is_served = !estimate->model;
    int width = 13;
    for (size_t i = 0; i < estimate->plan->configuration_count; i++)
        if ((int)strlen(estimate->plan->configurations[i].file_name) > width)
            width = (int)strlen(estimate->plan->configurations[i].file_name);
    print_plain("%-*s  crops  vision_tokens  longest   GFLOP  T_total_ms  runs_left  failing%s\n", width,
                "configuration", is_pruned(estimate->plan) ? "  kept_tokens  KV_cache_MB" : "");
    for (size_t i = 0; i < estimate->plan->configuration_count; i++) {
        const struct forecast *forecast = &estimate->configurations[i];
        double layouts = forecast->layouts ? (double)forecast->layouts : is_served ? (double)NAN : 1,
               count = forecast->count ? (double)forecast->count : (double)NAN;
        char time[32], crops[32], tokens[32], longest[32], work[32], kept[32], cache[32];
        print_plain("%-*s  %5s  %13s  %7s  %6s  %10s  %9lld  %7lld", width, estimate->plan->configurations[i].file_name,
                    plan_cell("%.1f", is_served ? (double)NAN : (double)forecast->crops / layouts, crops),
                    plan_cell("%.1f", (double)forecast->vision_tokens / layouts, tokens),
                    plan_cell("%.0f", is_served ? (double)NAN : (double)forecast->longest, longest),
                    plan_cell("%.4g", forecast->flops > 0 ? forecast->flops / count / 1e9 : (double)NAN, work),
                    plan_cell("%.4g", configuration_ms(estimate, i), time),
                    (long long)configuration_runs_left(estimate, i), (long long)forecast->failing);
        if (is_pruned(estimate->plan))
            print_plain("  %11s  %11s", plan_cell("%.1f", forecast->kept / count, kept),
                        plan_cell("%.4g", forecast->cache_bytes / count / 1e6, cache));
        print_plain("\n");
    }
}
static void print_plan_memory(const struct estimate *estimate) {
    const uint64_t bytes = all_bytes(estimate), free_bytes = bytes ? estimate->needs[0].free_bytes : 0;
    uint64_t of_weights[8] = {0};
    struct text_buffer sets = {NULL, 0, 0};
    if (!bytes) return;
    print_plain("memory      %.4g GB on %s: weights, KV cache and buffers\n", (double)bytes / 1e9,
                vp_engine_device(estimate->needs[0].counter.engine));
    for (size_t i = 0; i < estimate->needs_count && estimate->needs_count > 1; i++)
        print_plain("            %.4g GB for %s\n", (double)estimate->needs[i].memory_bytes / 1e9,
                    estimate->needs[i].weights);
    for (size_t i = 0; i < estimate->needs_count; i++) of_weights[i] = estimate->needs[i].memory_bytes;
    plan_fitting(&sets, estimate->plan, of_weights, free_bytes);
    if (free_bytes && bytes > free_bytes)
        print_plain("            %.4g GB is free: the sweep would %s%s\n", (double)free_bytes / 1e9,
                    estimate->needs_count == 1 ? "drop its largest configurations"
                    : sets.bytes               ? "be rejected; these fit together: "
                                               : "be rejected: none of them fits",
                    estimate->needs_count > 1 && sets.bytes ? sets.data : "");
    free(sets.data);
}
static void print_plan_baseline(const struct estimate *estimate) {
    if (!estimate->baseline->of) return;
    print_plain("baseline    %s%s: %lld remaining untimed passes along its answers",
                baseline_name(estimate->baseline, 0), estimate->plan->set_count > 1 ? ", ..." : "",
                (long long)estimate->follow_left);
    if (estimate->baseline_left) print_plain(", after %lld that generate them", (long long)estimate->baseline_left);
    if (baseline_bytes(estimate) > 0)
        print_plain("; the logits of a sample need at most %.4g MB", baseline_bytes(estimate) / 1e6);
    print_plain("\n");
}
static void print_plan_time(const struct estimate *estimate) {
    const int64_t seconds = isfinite(estimate->seconds) ? (int64_t)ceil(estimate->seconds) : 0;
    char passes[64] = "";
    if (estimate->follow_left)
        snprintf(passes, sizeof passes, " and %lld untimed passes",
                 (long long)(estimate->follow_left + estimate->baseline_left));
    if (no_count(estimate)[0]) print_plain("work        not known: %s\n", no_count(estimate));
    if (!estimate->runs_left && !estimate->follow_left)
        print_plain("time        %s\n", estimate->runs_measured ? "0: all runs are done" : "0: no sample can run");
    else if (isfinite(estimate->seconds))
        print_plain("time        %lld:%02lld:%02lld for %lld runs%s, %s; image decoding and warm-up are extra\n",
                    (long long)(seconds / 3600), (long long)(seconds / 60 % 60), (long long)(seconds % 60),
                    (long long)estimate->runs_left, passes,
                    estimate->runs_measured ? "as measured" : "estimated from the arrival times");
    else print_plain("time        not known until each configuration has a run: start the sweep, stop it with Ctrl-C "
                     "after the\n            first sample, and plan again with the same --output_dir\n");
}
/* 6 pairs that differ in one direction have a two-sided p of 2 / 2^6, the least number below 5 % */
enum { MCNEMAR_LEAST = 6 };
static void print_plan_resolution(const struct estimate *estimate) {
    const vp_resolution *resolution = &estimate->resolution;
    if (isfinite(resolution->accuracy))
        print_plain(
            "resolution  %zu samples distinguish accuracies that differ by %.1f percentage points (if only one is "
            "right on %.0f %% of the questions)\n",
            estimate->fewest, 100 * resolution->accuracy, 100 * PLAN_DISCORDANCE);
    else if (estimate->fewest >= MCNEMAR_LEAST)
        print_plain("resolution  %zu samples distinguish accuracies that differ by %.0f percentage points or more (%d "
                    "questions on which only one side is right)\n",
                    estimate->fewest, 100.0 * MCNEMAR_LEAST / (double)estimate->fewest, MCNEMAR_LEAST);
    else print_plain("resolution  %zu samples are too few to distinguish accuracies\n", estimate->fewest);
    if (isfinite(resolution->mean))
        print_plain(
            "            %s mean latencies that differ by %.2g %%, P50s by %.2g %% (spread between runs: %.2g %%; "
            "paired comparisons resolve smaller differences)\n",
            isfinite(resolution->accuracy) ? "and" : "but they distinguish", 100 * resolution->mean,
            100 * resolution->p50, 100 * estimate->variation);
    const int64_t requests = (int64_t)estimate->fewest * estimate->plan->settings.run_count,
                  enough = 2 * (int64_t)vp_statistics_percentile_needs(95, 0.95);
    if (knobs_are_loaded(&estimate->plan->configurations[0].knobs) && requests < enough)
        print_plain("warning     %lld requests per load may be too few to decide a limit on P95, because they wait for "
                    "each other: about %lld usually suffice (--num_runs_per_sample %lld)\n",
                    (long long)requests, (long long)enough,
                    (long long)((enough + (int64_t)estimate->fewest - 1) / (int64_t)estimate->fewest));
    if (estimate->fewest < PLAN_SAMPLES_ENOUGH)
        print_plain(
            "warning     fewer than %d samples: similar configurations may differ in accuracy by less than the noise; "
            "%s\n",
            PLAN_SAMPLES_ENOUGH,
            estimate->fewest < estimate->plan->settings.data.num_samples ? "the data have no more"
                                                                         : "raise --num_samples");
}
static int print_plan(const struct estimate *estimate) {
    const struct plan *plan = estimate->plan;
    int code;
    print_plain("plan        %zu configuration%s, %zu point%s, %d run%s each; %lld runs measured, %lld left\n",
                plan->configuration_count, plural_s((int64_t)plan->configuration_count), plan->point_count,
                plural_s((int64_t)plan->point_count), plan->settings.run_count,
                plural_s((int64_t)plan->settings.run_count), (long long)estimate->runs_measured,
                (long long)estimate->runs_left);
    for (size_t set = 0; set < plan->set_count; set++)
        if ((code = dataset_print(&plan->sets[set], estimate->model)) != 0) return code;
    print_plan_grid(estimate);
    print_plan_baseline(estimate);
    print_plan_memory(estimate);
    print_plan_time(estimate);
    print_plan_resolution(estimate);
    if (plan->repeats)
        print_plain("note        %s repeats points %zu times; each is measured once\n",
                    plan->settings.sampling_strategy, plan->repeats);
    if (estimate->note[0]) print_plain("note        %s\n", estimate->note);
    return fflush(stdout) || ferror(stdout) ? output_failed() : 0;
}
int plan_cost_show(const struct sweep *sweep, int as_json) {
    const struct plan *plan = &sweep->plan;
    const struct model *model = plan->variants.count ? NULL : &sweep->model;
    int code = 0;
    struct estimate estimate = {.sweep = sweep, .model = model, .plan = plan, .baseline = &sweep->baseline};
    estimate.configurations = zeroed(plan->configuration_count, sizeof *estimate.configurations);
    estimate.needs_count = model ? plan->weights_count : 0;
    estimate.needs = zeroed(estimate.needs_count + 1, sizeof *estimate.needs);
    for (size_t i = 0; i < estimate.needs_count; i++) {
        estimate.needs[i].weights = plan->weights[i];
        needs_find(&sweep->settings.engine, model, plan, &estimate.needs[i]);
    }
    if (!code) code = look_ahead(&estimate);
    if (!code) code = as_json ? print_plan_json(&estimate) : print_plan(&estimate);
    for (size_t i = 0; i < estimate.needs_count; i++) session_free(&estimate.needs[i].counter);
    FREE_ALL(estimate.configurations, estimate.needs);
    return code;
}
