/* command_run.c: one image, one question, and where the milliseconds go.
 * Options become the plan of one request (run_prepare), which is run and timed (run_measure, or profile_run with
 * --profile). The answer and the times go to stdout as text or JSON. */
#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/noise.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "commands/run_endpoint.h"
#include "request/dump.h"
#include "request/input.h"
#include "model/model.h"
#include "model/prompt.h"
#include "request/provenance.h"
#include "request/record.h"
#include "request/request.h"
#include "score/scoring.h"
#include "sweep/profile.h"
#include "sweep/profiler.h"
#include "model/image.h"
#include "tile/tile_options.h"
#include "vlmprof.h"
#include "vlmprof_config.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec RUN_OPTIONS[] = {
    OPTION_GROUP("input"),
    OPTION_MODEL,
    OPTION_MMPROJ,
    OPTION_SYNTHETIC,
    {"prompt", TEXT, "TEXT", NULL, 0, 0, NULL, "the question (short: -p)"},
    {"style", TEXT, "S", NULL, 0, 0, NULL, "prompt style: \" User: S: TEXT Assistant:\"",
     .excludes = "raw_prompt endpoint"},
    {"raw_prompt", FLAG, NULL, NULL, 0, 0, NULL, "tokenize TEXT as it is", OF_ENGINE},
    {"show_prompt", FLAG, NULL, NULL, 0, 0, NULL,
     "print the prompt's text and ids as JSON and end; the model does not run",
     .excludes = "profile dump endpoint"},
    RULED_GROUP("a server instead of a model", .needs = "endpoint"),
    OPTIONS_OF_RUN_ENDPOINT(0),
    OPTION_GROUP("knobs"),
    OPTION_PREPROCESS,
    OPTION_TIER,
    OPTION_MAX_CROPS,
    OPTION_CROPS,
    OPTION_VISION_TOKENS,
    OPTION_IMAGE_KNOB("NAME=N"),
    KNOB_GRID_ROWS(KNOB_RUN_OPTIONS)
    OPTION_IMPORTANCE_SCORES_FILE,
    KNOB_EACH_ROWS(KNOB_RUN_OPTIONS)
    OPTION_GROUP("measuring"),
    {"num_runs", COUNT, "R", NULL, 1, 10000, NULL,
     "timed runs, after an untimed one that warms up (default: 1; with --profile 5)"},
    {"cold", FLAG, NULL, NULL, 0, 0, NULL,
     "leave the warm-up out: the first timed run pays for what starts up, and no other request runs"},
    {"max_new_tokens", COUNT, "N", "32", 1, 1000000, NULL, "most tokens of the answer"},
    OPTION_IGNORE_EOS,
    {"seed", COUNT, "S", "42", 0, UINT32_MAX, NULL, "of synthetic weights; with --twins of the order in the pairs",
     .excludes = "endpoint", .unless = "twins", .because = "a server has weights of its own"},
    OPTION_DEVICE,
    OPTION_THREADS,
    OPTION_GEMM,
    OPTION_GPU,
    RULED_GROUP("profiling", .needs = "profile", .excludes = "endpoint",
                .because = "operations are those of vlmprof's own engine"),
    {"profile", FLAG, NULL, NULL, 0, 0, NULL,
     "time every operation: torch.profiler's table instead of the stages, of the requests that the schedule records"},
    OPTIONS_OF_OPERATIONS,
    {"profile_format", CHOICE, "FORM", "torch", 0, 0, "torch cprofile csv json folded",
     "key_averages' table, cProfile's (ncalls tottime ...), csv, json, which vlmprof trace sorts again, or folded: "
     "stacks for FlameGraph and speedscope, in ns",
     .excludes = "json"},
    {"output", TEXT, "FILE", NULL, 0, 0, NULL, "with --profile: write the table there (short: -o)"},
    {"trace", TEXT, "FILE", NULL, 0, 0, NULL, "with --profile: a Chrome trace of the first recorded cycle",
     .excludes = "output_dir"},
    {"html", TEXT, "FILE", NULL, 0, 0, NULL,
     "with --profile: one page with a flame chart over time and the table of operations; it needs no network"},
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL,
     "with --profile: a Chrome trace of each recorded cycle, DIR/profiler_traces/<worker>.<ns>.pt.trace.json"},
    {"chrome_trace", FLAG, NULL, NULL, 0, 0, NULL,
     "with --output_dir: the trace of the first cycle as DIR/chrome_trace.json instead", .needs = "output_dir"},
    OPTION_TRACE_MAX_BYTES,
    {"cost", FLAG, NULL, NULL, 0, 0, NULL,
     "with --profile: what each mode costs (off, stage, op, trace), by runs in random order"},
    {"cost_rounds", COUNT, "N", "20", 2, 100000, NULL,
     "with --cost: rounds of a run in each mode; below 6 medians have no interval", .needs = "cost"},
    RULED_GROUP("schedule of the profile", .needs = "profile"),
    {"skip_first", COUNT, "N", "0", 0, 1000000, NULL, "schedule: requests before the first cycle"},
    {"wait", COUNT, "N", "0", 0, 1000000, NULL, "schedule: a cycle's requests that run as ever"},
    {"warmup", COUNT, "N", "1", 0, 1000000, NULL,
     "schedule: then so many with every operation timed, thrown away; --cold: 0",
     .excludes = "cold"},
    {"active", COUNT, "N", "1", 1, 1000000, NULL,
     "schedule: then so many that are recorded; without an option of the schedule --num_runs"},
    {"repeat", COUNT, "N", "1", 0, 1000000, NULL,
     "schedule: cycles; 0: until --num_runs requests are done, warm-ups included"},
    {"schedule_every_n_steps", COUNT, "N", "0", 0, 1000000, NULL,
     "schedule: cycles begin so many requests apart; 0: one after the other"},
    OPTION_GROUP("output"),
    {"dump", TEXT, "DIR", NULL, 0, 0, NULL,
     "write inputs, features, residuals, logits and tokens as .npy (copying is inside the times)",
     .excludes = "profile endpoint"},
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

/* Chooses the decoder blocks of the request: by --active_blocks, or as many as --num_active_blocks says. Returns 0 or
 * an exit code. */
static int run_choose_blocks(const struct options *options, struct run_state *state) {
    const int32_t all = state->model.config.block_count;
    const struct option_value *list = opt(options, "active_blocks");
    int32_t *blocks = resize(NULL, (size_t)all, sizeof *blocks), count = 0;
    int code = 0;
    if (!list->given) {
        count = is_given(options, "num_active_blocks") ? (int32_t)number_of(options, "num_active_blocks") : all;
        code = model_choose_blocks(options, &state->model, count, blocks);
    }
    for (int32_t block = 0; block < all && list->given; block++)
        for (size_t i = 0; i < list->count; i++) if (list->numbers[i] == block) blocks[count++] = block;
    for (size_t i = 0; i < list->count && list->given && !code; i++)
        if (list->numbers[i] >= all)
            code = complain(EXIT_USAGE, "--active_blocks %lld: the model has blocks 0..%d", (long long)list->numbers[i],
                            all - 1);
    if (!code) knob_set_list(&state->knobs, KNOB_BLOCKS, blocks, count);
    free(blocks);
    return code;
}
/* Sets the knobs of the request. Returns 0 or an exit code. */
static int run_choose_knobs(const struct options *options, struct run_state *state) {
    const vp_model_config *config = &state->model.config;
    int64_t top_k = is_given(options, "top_k") ? number_of(options, "top_k") : config->top_k;
    int code;
    if (!config->expert_count && is_given(options, "top_k"))
        return complain(EXIT_USAGE, "--top_k: %s has no experts to choose from",
                        vp_architecture_name(config->architecture));
    if (top_k > config->expert_count)
        return complain(EXIT_USAGE, "--top_k %lld: the model has %d experts", (long long)top_k, config->expert_count);
    if (is_given(options, "active_blocks")
        && (is_given(options, "num_active_blocks") || is_given(options, "importance_scores_file")))
        return complain(EXIT_USAGE,
                        "--active_blocks names the blocks; leave --num_active_blocks and --importance_scores_file out");
    knob_set_number(&state->knobs, KNOB_TOP_K, top_k);
    if (state->tiles.tier) knob_set_text(&state->knobs, KNOB_TIER, state->tiles.tier->name);
    if ((code = run_choose_blocks(options, state)) != 0) return code;
    for (int knob = KNOB_EACH; knob < KNOB_EACH_END; knob++) {
        const char *option = KNOBS[knob].option;
        if (!is_given(options, option)) continue;
        if (KNOBS[knob].type == KNOB_IS_NUMBER) knob_set_number(&state->knobs, knob, number_of(options, option));
        else knob_set_text(&state->knobs, knob, text_of(options, option));
    }
    return is_given(options, "prune") ? prune_check("prune", &opt(options, "prune")->text, 1) : 0;
}

/* Loads the image of the request and computes its layout. Returns 0 or an exit code. */
static int run_load_image(const char *path, struct run_state *state) {
    const struct model *model = &state->model;
    const struct image_size size = {NULL, state->tiles.rule == VP_TILE_TOKENS ? state->tiles.vision_tokens : 0,
                                    knob_text(&state->knobs, KNOB_IMAGE),
                                    (int32_t)knob_number(&state->knobs, KNOB_IMAGE), &state->tiles};
    vp_error error = {VP_OK, -1, "", ""};
    char reason[LINE_BYTES];
    vp_result result;
    int code = load_image(path, &state->image, reason, sizeof reason);
    state->sample.image_path = copy_text(path, strlen(path));
    if (code) return complain(code, "%s", reason);
    state->sample.width_px = state->image.width_px;
    state->sample.height_px = state->image.height_px;
    state->input.image = &state->image;
    state->input.layout = &state->layout;
    result = model->rules->cut(model, &size, state->image.width_px, state->image.height_px, &state->layout, &error);
    return result == VP_OK ? 0 : complain_result(EXIT_INPUT, path, result, &error);
}

/* Knobs that have no meaning for a model, and the one of its images. Returns 0 or EXIT_USAGE. */
static int run_check_knobs(const struct options *options, struct run_state *state) {
    static const char *const knobs[] = {"style", "preprocess", "tier", "max_crops", "crops"};
    const struct model *model = &state->model;
    const int is_tiled = model->rules->is_tiled;
    struct image_size size = {NULL, state->tiles.rule == VP_TILE_TOKENS ? state->tiles.vision_tokens : 0, NULL, 0,
                              NULL};
    int32_t *values = NULL;
    size_t count = 0;
    char *name = NULL;
    int code = image_knob_read(options, &name, &values, &count);
    if (!code && count) {
        knob_set_text(&state->knobs, KNOB_IMAGE, name);
        knob_set_number(&state->knobs, KNOB_IMAGE, values[0]);
        size.knob = knob_text(&state->knobs, KNOB_IMAGE);
        size.knob_value = values[0];
    }
    free(name);
    free(values);
    if (!code && count > 1) code = complain(EXIT_USAGE, "--image_knob: run takes one value; sweep tries several");
    if (!code && count && (is_given(options, "vision_tokens") || is_tiled))
        return complain(EXIT_USAGE, is_tiled ? "--image_knob: Molmo's crops are --max_crops, --tier ..."
                                             : "--image_knob and --vision_tokens exclude each other");
    if (!code) code = model->rules->knobs(options, model, &size);
    for (size_t i = 0; !is_tiled && i < sizeof knobs / sizeof *knobs; i++)
        if (!code && is_given(options, knobs[i]))
            code = complain(EXIT_USAGE, "--%s: %s belong to the Molmo models, not to %s", knobs[i],
                            i ? "tiles and tiers" : "styles of prompts",
                            vp_architecture_name(model->config.architecture));
    return code;
}

/* Makes the prompt, cuts the image and tokenizes. Returns 0 or an exit code. */
static int run_prompt(const struct options *options, struct run_state *state) {
    const char *text = text_of(options, "prompt");
    const int raw = is_given(options, "raw_prompt"), has_image = options->operand_count > 0;
    int code = 0;
    if (model_is_blind(&state->model) && is_given(options, "prune"))
        return complain(EXIT_USAGE, "--prune: %s reads text only, and has no image tokens",
                        vp_architecture_name(state->model.config.architecture));
    if (has_image && model_is_blind(&state->model))
        return complain(EXIT_USAGE, "%s: %s reads text only: leave the image out", state->model.name,
                        vp_architecture_name(state->model.config.architecture));
    if (raw) state->sample.prompt = copy_text(text, strlen(text));
    else {
        state->sample.prompt = state->model.rules->prompt(&state->model, text_of(options, "style"), text, has_image);
        warn_of_template(&state->model);
    }
    state->sample.question = copy_text(text, strlen(text));
    if (!code && has_image) code = run_load_image(options->operands[0], state);
    return code ? code : tokenize_input(state);
}

/* Makes the plan of the request from the options. Loads the tokenizer, the configuration and the image, but no weights.
 * Returns 0 or an exit code. */
static int run_prepare(const struct options *options, struct run_state *state) {
    int code;
    if (!text_of(options, "prompt")) return complain(EXIT_USAGE, "run needs a question: -p TEXT");
    if ((code = tile_options_of(options, &state->tiles)) != 0 || (code = check_device(options)) != 0
        || (code = check_gemm(options)) != 0 || (code = check_gpu_switches(options)) != 0)
        return code;
    if ((code = model_load(options, &state->model)) != 0 || (code = run_check_knobs(options, state)) != 0
        || (code = run_choose_knobs(options, state)) != 0)
        return code;
    if (!is_given(options, "max_crops") && state->tiles.rule == VP_TILE_ADAPTIVE)
        state->tiles.max_crops = state->model.config.geometry.max_crops;
    if ((code = run_prompt(options, state)) != 0) return code;
    input_apply_knobs(&state->input, &state->knobs); /* behind the image: pruning counts its tokens */
    input_seed_pruning(&state->input, (uint32_t)number_of(options, "seed"), 0);
    state->input.new_tokens = (int32_t)number_of(options, "max_new_tokens");
    state->input.ignore_eos = is_given(options, "ignore_eos");
    if ((code = check_sequence(&state->model, &state->input)) != 0) return code;
    return text_of(options, "dump") ? make_folder(text_of(options, "dump")) : 0;
}

/* Warns when the machine was not quiet, by its counters or by how much two runs of this request differ. */
static void run_warn(struct run_state *state) {
    size_t count = state->run_count > 1 ? (size_t)state->run_count - 1 : 0;
    double *ratios = resize(NULL, count + 1, sizeof *ratios);
    for (size_t i = 0; i < count; i++)
        ratios[i] = log((double)state->runs[i + 1].total_ns / (double)state->runs[i].total_ns);
    state->noise.pair_count = (int64_t)count;
    state->noise.spread = vp_noise_spread(ratios, count);
    free(ratios);
    noise_warn(&state->warnings, &state->noise, NULL, 1, NOISE_ADVICE_RUN);
    for (size_t i = 0; i < state->warnings.count; i++) complain(0, "%s", state->warnings.items[i]);
}

/* Runs the request once untimed (not with --cold), then state->run_count times. After Ctrl-C the request that runs is
 * the last one, and run_count becomes the number of whole runs. */
static vp_result run_all(const struct options *options, struct run_state *state, vp_error *error) {
    vp_noise_reading reading;
    vp_result result = VP_OK;
    int32_t done = 0;
    /* the first timed run overwrites the times and the answer of the warm-up */
    if (!is_given(options, "cold")) {
        show_progress("warm-up");
        result = request_run(&state->session, &state->input, &state->runs[0], error);
    }
    if (text_of(options, "dump")) {
        dump_reserve(&state->dump, &state->model, &state->input);
        state->input.dump = &state->dump;
    }
    noise_begin(&state->noise, &reading);
    while (done < state->run_count && result == VP_OK && !interrupted) {
        show_progress("run %d of %d", done + 1, state->run_count);
        result = request_run(&state->session, &state->input, &state->runs[done], error);
        if (result == VP_OK) done++;
    }
    noise_end(&state->noise, &reading);
    state->run_count = done;
    return result;
}

/* What pruning makes of the request. Returns 0, or EXIT_USAGE with the reason why it cannot be done. */
static int run_check_pruning(struct run_state *state) {
    vp_error error = {VP_OK, -1, "", ""};
    const vp_result result = request_pruned(&state->session, &state->input, &state->pruned, &error);
    return result == VP_OK ? 0 : complain_result(EXIT_USAGE, "--prune", result, &error);
}

/* Opens the engine, runs the request and writes the --dump of the last run. Returns 0 or an exit code. */
static int run_measure(const struct options *options, struct run_state *state) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    int code;
    state->run_count = is_given(options, "num_runs") ? (int32_t)number_of(options, "num_runs") : 1;
    state->run_capacity = state->run_count;
    state->runs = runs_make(state->run_count, state->input.new_tokens);
    if ((code = engine_open(options, &state->model, sequence_of(&state->input) + state->input.new_tokens,
                            state->input.layout ? state->layout.views : 1, &state->session.engine))
        != 0)
        return code;
    state->session.model = &state->model;
    if ((code = run_check_pruning(state)) != 0) return code;
    end_in_order(); /* Ctrl-C: the runs that are whole are printed */
    result = run_all(options, state, &error);
    close_progress();
    if (result != VP_OK) return complain_result(exit_code_of(result), NULL, result, &error);
    run_warn(state);
    return text_of(options, "dump") && state->run_count
               ? dump_write(text_of(options, "dump"), &state->session, &state->input,
                            &state->runs[state->run_count - 1], &state->dump)
               : 0;
}

/* Prints a row of the table: a stage, or with steps > 0 the mean of that many decode steps. TFLOP/s and GB/s are the
 * operations and bytes that the arithmetic needs, per time. Compared with the machine's peaks they show how far a stage
 * is from the hardware's limit. */
static void print_stage(const struct run_state *state, const char *name, int stage, int32_t steps, double total) {
    const int divisor = steps ? steps : 1, width = state->run_count < 3 ? 11 : 26;
    struct median_range range = range_of_runs(state->runs, state->run_count, metric_of, stage_metric(stage, 0));
    double medians[DETAIL_COUNT], ms = range.median / divisor;
    for (int detail = 0; detail < DETAIL_COUNT; detail++)
        medians[detail] =
            range_of_runs(state->runs, state->run_count, metric_of, stage_metric(stage, detail)).median / divisor;
    if (!isfinite(ms)) {
        print_plain("%-18s %*s %7s %9s %9s %10s %9s %9s %8s\n", name, width, "-", "-", "-", "-", "-", "-", "-", "-");
        return;
    }
    print_plain("%-18s %*s %6.1f%% %9s", name, width,
                number_measured(ms, range.low / divisor, range.high / divisor).text, 100 * ms / total,
                number_measured(medians[DETAIL_WALL], (double)NAN, (double)NAN).text);
    if (is_host_stage(stage)) print_plain(" %9s %10s %9s %9s %8s\n", "-", "-", "-", "-", "-");
    else
        print_plain(" %9.0f %10.4g %9.4g %9.3g %8.3g\n", medians[DETAIL_LAUNCHES], medians[DETAIL_FLOPS] / 1e9,
                    medians[DETAIL_BYTES] / 1e9, ms > 0 ? medians[DETAIL_FLOPS] / ms / 1e9 : 0.0,
                    ms > 0 ? medians[DETAIL_BYTES] / ms / 1e6 : 0.0);
}
/* Prints a row of the table that is no stage. */
static void print_sum(const struct run_state *state, const char *name, int metric, double total) {
    struct median_range range = range_of_runs(state->runs, state->run_count, metric_of, metric);
    print_plain("%-18s %*s %6.1f%%\n", name, state->run_count < 3 ? 11 : 26,
                number_measured(range.median, range.low, range.high).text, 100 * range.median / total);
}
static void print_stages(const struct run_state *state) {
    double total = range_of_runs(state->runs, state->run_count, metric_of, METRIC_TOTAL).median;
    const int is_range = state->run_count >= 3;
    int32_t steps = state->runs[0].token_count - 1;
    print_plain("\n%-18s %*s %7s %9s %9s %10s %9s %9s %8s%s\n", "stage", is_range ? 26 : 11,
                is_range ? "ms, median [range]" : "ms", "share", "host ms", "launches", "GFLOP", "GB", "TFLOP/s",
                "GB/s", state->model.synthetic ? "   (synthetic weights)" : "");
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        char name[32];
        if (is_stage_left_out(&state->runs[0], i)) continue;
        snprintf(name, sizeof name, i == VP_STAGE_DECODE ? "%s (%d step%s)" : "%s", vp_stage_name((vp_stage)i), steps,
                 steps == 1 ? "" : "s");
        print_stage(state, name, i, 0, total);
        if (i == VP_STAGE_DECODE && steps > 1) print_stage(state, "  per step", i, steps, total);
    }
    print_sum(state, "unaccounted", METRIC_UNACCOUNTED, total);
    print_sum(state, "total", METRIC_TOTAL, total);
}
/* One line: how many runs, whether they are warm, what the ranges are. */
static void print_runs(const struct options *options, const struct run_state *state) {
    char words[RANGE_WORDS];
    double level = range_of_runs(state->runs, state->run_count, metric_of, METRIC_TOTAL).level;
    print_plain("\n%d run%s %s", state->run_count, state->run_count == 1 ? "" : "s",
                !is_given(options, "cold") ? "after a warm-up"
                : state->run_count == 1    ? "without a warm-up (--cold)"
                                           : "without a warm-up (--cold): the first is cold");
    if (state->run_count == 1) print_plain("; --num_runs 3 or more shows the spread\n");
    else print_plain("; medians%s%s\n", isfinite(level) ? "; " : "",
                     range_words((size_t)state->run_count, "runs", level, words));
}
static void print_term(const struct run_state *state, const struct term *term, const char *number, const char *why) {
    print_plain("%-19s %-*s %s%s\n", term->key, state->run_count < 3 ? 18 : 29, number, term->meaning, why);
}
/* The decode steps of all runs: the middle one and the longest. */
static void print_steps(const struct run_state *state) {
    struct text_buffer number = {NULL, 0, 0};
    double *values = NULL;
    size_t count = 0;
    for (int32_t i = 0; i < state->run_count; i++) {
        const int32_t steps = state->runs[i].token_count - 1;
        values = resize(values, count + (size_t)steps, sizeof *values);
        for (int32_t k = 0; k < steps; k++) values[count++] = (double)state->runs[i].step_ns[k] / 1e6;
    }
    if (count > 1) {
        text_add_string(&number, number_measured(median_range_of(values, count).median, (double)NAN, (double)NAN).text);
        text_add_string(&number, "..");
        text_add_string(&number, number_measured(values[count - 1], (double)NAN, (double)NAN).text);
        text_add_string(&number, " ms");
        print_term(state, &TERMS[TERM_STEP], number.data, "; median..longest of all steps");
    }
    free(values);
    free(number.data);
}
/* The numbers of the whole request, each with what it is. */
static void print_terms(const struct run_state *state) {
    static const int shown[] = {METRIC_TOTAL, METRIC_TTFT, METRIC_PER_TOKEN, TERM_DECODE_RATE, TERM_OUTPUT_RATE,
                                METRIC_CLOSURE, METRIC_ENERGY, METRIC_TOKEN_ENERGY};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const struct term *term = &TERMS[shown[i]];
        const struct median_range range = range_of_runs(state->runs, state->run_count, term_of, shown[i]);
        char number[80];
        if (is_left_out(shown[i], range.median)) continue;
        if (shown[i] == METRIC_ENERGY) {
            char resolution[80];
            snprintf(number, sizeof number, "%s J", number_measured(range.median, range.low, range.high).text);
            snprintf(resolution, sizeof resolution, "; its counter moves in steps of %.3g J",
                     state->runs[0].energy_resolution_j);
            print_term(state, term, number, resolution);
            continue;
        }
        snprintf(number, sizeof number, "%s%s", number_measured(range.median, range.low, range.high).text,
                 isfinite(range.median) && !strcmp(term->unit, "ms") ? " ms" : !strcmp(term->unit, "J") ? " J" : "");
        print_term(state, term, number, isfinite(range.median) ? "" : "; one token has no decode step");
        if (shown[i] == METRIC_PER_TOKEN) print_steps(state);
    }
}

/* The lines on image and tokens where the model's processor cuts the image. */
static void print_picture(const struct run_state *state) {
    const vp_layout *layout = &state->layout;
    const int has_whole = layout->views > layout->crops;
    if (state->model.config.vit_native)
        print_plain("image    %dx%d -> %dx%d, %d rows x %d cols of tokens of %dx%d\n", layout->width_px,
                    layout->height_px, layout->resized_width_px, layout->resized_height_px, layout->tiling.rows,
                    layout->tiling.cols, state->model.config.geometry.crop_px, state->model.config.geometry.crop_px);
    else
        print_plain("image    %dx%d -> %dx%d, %d view%s of %dx%d (%d rows x %d cols%s)\n", layout->width_px,
                    layout->height_px, layout->resized_width_px, layout->resized_height_px, layout->views,
                    layout->views == 1 ? "" : "s", state->model.processor.view_px,
                    state->model.processor.view_px, layout->tiling.rows, layout->tiling.cols,
                    has_whole ? " + the whole image" : "");
    print_plain("tokens   %d = %d image (%d features, %d separators, %d marker) + %d text\n",
                sequence_of(&state->input), layout->image_tokens, layout->feature_tokens, layout->col_tokens,
                layout->marker_tokens, state->input.text_count);
}

/* What opening the engine took, apart from any request. */
static void print_opening(const struct run_state *state) {
    const vp_opening opening = vp_engine_opening(state->session.engine);
    print_plain("opening  kernels chosen in %.2f s, ", (double)opening.device_ns / 1e9);
    if (opening.page_bytes)
        print_plain("%.3g GB of a packed file brought into memory in %.2f s\n", (double)opening.page_bytes / 1e9,
                    (double)opening.pages_ns / 1e9);
    else
        print_plain("weights %s in %.2f s\n", state->model.synthetic ? "drawn" : "loaded",
                    (double)opening.weights_ns / 1e9);
}
static void put_opening(vp_json_writer *writer, const struct run_state *state) {
    const vp_opening opening = vp_engine_opening(state->session.engine);
    vp_json_key(writer, "opening");
    vp_json_begin_object(writer);
    put_double(writer, "device_ms", (double)opening.device_ns / 1e6);
    put_double(writer, "memory_ms", (double)opening.memory_ns / 1e6);
    put_double(writer, "weights_ms", (double)opening.weights_ns / 1e6);
    put_double(writer, "pages_ms", (double)opening.pages_ns / 1e6);
    put_int(writer, "page_bytes", (int64_t)opening.page_bytes);
    vp_json_end_object(writer);
}

static void print_run(const struct options *options, const struct run_state *state) {
    const vp_layout *layout = state->input.layout;
    const struct pass_result *run = &state->runs[0];
    const char *note = vp_engine_device_note(state->session.engine),
               *cpu = gpu_of(state->session.engine) < 0 ? "no CUDA: " : "";
    print_plain("answer   ");
    print_visible(run->answer, run->answer_bytes);
    print_plain("\nmodel    %s%s, %s, ", state->model.name,
                state->model.synthetic ? " (synthetic weights: latency is real, the answer is noise)" : "",
                text_of(options, "weights"));
    if (state->model.config.expert_count)
        print_plain("top_k %d of %d, ", state->input.top_k, state->model.config.expert_count);
    print_plain("blocks %d of %d\n", state->input.block_count, state->model.config.block_count);
    print_plain("device   %s%s%s%s%s; gemm %s for 1 row, %s for 1024\n", vp_engine_device(state->session.engine),
                note[0] ? " (" : "", note[0] ? cpu : "", note, note[0] ? ")" : "",
                vp_engine_gemm(state->session.engine, 1),
                vp_engine_gemm(state->session.engine, 1024));
    print_opening(state);
    if (state->input.layout && !state->model.rules->is_tiled) print_picture(state);
    else if (layout) {
        print_plain("image    %dx%d -> tiling %dx%d (rows x cols), %d crops + global view, canvas %dx%d, %s\n",
                    layout->width_px, layout->height_px, layout->tiling.rows, layout->tiling.cols, layout->crops,
                    layout->canvas_width_px, layout->canvas_height_px,
                    state->tiles.tier ? state->tiles.tier->name : text_of(options, "preprocess"));
        print_plain(
            "tokens   %d = 1 BOS + %d image (%d features, %d column, %d marker) + %d text; theoretical vision "
            "tokens %d\n",
            sequence_of(&state->input), layout->image_tokens, layout->feature_tokens, layout->col_tokens,
            layout->marker_tokens, state->input.text_count, layout->theoretical_tokens);
    } else print_plain("tokens   %d = %s%d text, no image\n", sequence_of(&state->input),
                       state->input.no_bos ? "" : "1 BOS + ", state->input.text_count);
    if (state->input.prune.how.method != VP_PRUNE_NONE) {
        struct text_buffer pruned = {NULL, 0, 0};
        prune_text(&pruned, &state->pruned);
        print_plain("prune    %s: %s\n", knob_text(&state->knobs, KNOB_PRUNE), pruned.data);
        free(pruned.data);
    }
    print_plain("output   %d token%s%s\n", run->token_count, run->token_count == 1 ? "" : "s",
                run->ended_by_eos ? ", the last is EOS" : "");
    print_stages(state);
    print_runs(options, state);
    print_terms(state);
}

/* "medians": of each number that "runs" lists and of the rates, with the range and its level. */
static void put_medians(vp_json_writer *writer, const struct run_state *state) {
    vp_json_key(writer, "medians");
    vp_json_begin_object(writer);
    for (int i = 0; i < METRIC_STAGE + VP_STAGE_COUNT + 2; i++) {
        const int rate = i - METRIC_STAGE - VP_STAGE_COUNT; /* 0 and 1 */
        const struct median_range range =
            rate < 0 ? range_of_runs(state->runs, state->run_count, metric_of, i)
                     : range_of_runs(state->runs, state->run_count, term_of, TERM_DECODE_RATE + rate);
        if (rate < 0 && (is_left_out(i, range.median) || is_stage_left_out(&state->runs[0], i - METRIC_STAGE))) continue;
        vp_json_key(writer, rate >= 0          ? TERMS[TERM_DECODE_RATE + rate].key
                            : i < METRIC_STAGE ? METRIC_KEYS[i]
                                               : vp_stage_name((vp_stage)(i - METRIC_STAGE)));
        vp_json_begin_object(writer);
        put_double(writer, "median", range.median);
        put_double(writer, "low", range.low);
        put_double(writer, "high", range.high);
        put_double(writer, "level", range.level);
        vp_json_end_object(writer);
    }
    vp_json_end_object(writer);
}

static void print_run_json(const struct options *options, const struct run_state *state) {
    vp_score_outcome scored;
    struct scoring scoring;
    const struct point point = {.sample = &state->sample,
                                .layout = state->input.layout,
                                .knobs = &state->knobs,
                                .target_tokens = state->input.layout
                                                     ? target_tokens_of(&state->tiles, state->input.layout)
                                                     : 0,
                                .target_crops = state->input.layout ? state->input.layout->crops : 0,
                                .runs = state->runs,
                                .run_count = state->run_count,
                                .metric = VP_SCORE_VQA_SEED,
                                .ignore_eos = is_given(options, "ignore_eos")};
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
    vp_json_begin_object(&writer);
    put_text(&writer, "schema", "vlmprof-run-2");
    put_text(&writer, "model", state->model.name);
    put_text(&writer, "architecture", vp_architecture_name(state->model.config.architecture));
    put_bool(&writer, "synthetic", state->model.synthetic);
    put_answer(&writer, "answer", &state->runs[0]);
    put_text(&writer, "image", state->sample.image_path);
    if (point.layout) put_pair(&writer, "image_size", state->sample.height_px, state->sample.width_px);
    else put_null(&writer, "image_size");
    put_text(&writer, "preprocess", !state->model.rules->is_tiled ? NULL
                                    : state->tiles.tier           ? "tier"
                                                                  : text_of(options, "preprocess"));
    knob_put(&writer, KNOB_IMAGE, &state->knobs);
    knob_put_more(&writer, KNOB_IMAGE, &state->knobs);
    knob_put_more(&writer, KNOB_BLOCKS, &state->knobs);
    put_point_layout(&writer, &point);
    if (state->input.prune.how.method != VP_PRUNE_NONE) {
        vp_json_key(&writer, "pruned");
        vp_json_begin_object(&writer);
        knob_put(&writer, KNOB_PRUNE, &state->knobs);
        prune_put(&writer, &state->pruned);
        vp_json_end_object(&writer);
    }
    put_point_tokens(&writer, &point);
    score_point(&point, &scoring, &scored);
    put_point_answer(&writer, &point, &scored);
    scoring_free(&scoring);
    put_bool(&writer, "warm", !is_given(options, "cold"));
    put_int(&writer, "num_runs", state->run_count);
    put_double(&writer, TERMS[TERM_DECODE_RATE].key,
               1e3 / metric_mean(state->runs, state->run_count, METRIC_PER_TOKEN));
    put_double(&writer, TERMS[TERM_OUTPUT_RATE].key,
               state->runs[0].token_count * 1e3 / metric_mean(state->runs, state->run_count, METRIC_TOTAL));
    put_point_times(&writer, &point);
    put_medians(&writer, state);
    put_opening(&writer, state);
    put_noise(&writer, &state->noise);
    put_list(&writer, "warnings", &state->warnings);
    vp_json_key(&writer, "provenance");
    vp_json_begin_object(&writer);
    put_provenance(&writer, options, state->session.engine);
    vp_json_end_object(&writer);
    put_config(&writer, options);
    vp_json_end_object(&writer);
    vp_json_finish(&writer);
    putchar('\n');
}

/* --show_prompt: prints the prompt's text, its ids as struct prompt_tokens has them, and the sequence length. */
static void print_prompt(const struct run_state *state) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 0);
    vp_json_begin_object(&writer);
    put_text(&writer, "prompt_text", state->sample.prompt);
    put_ints(&writer, "ids", state->input.text_ids,
             state->input.no_bos ? sequence_of(&state->input) : state->input.text_count);
    put_int(&writer, "text_tokens", state->input.text_count);
    put_int(&writer, "image_tokens", state->input.layout ? state->input.layout->image_tokens : 0);
    put_int(&writer, "total_sequence_length", sequence_of(&state->input));
    vp_json_end_object(&writer);
    vp_json_finish(&writer);
    putchar('\n');
}
static int run_command(const struct options *options) {
    struct run_state state;
    const int shows = is_given(options, "show_prompt"), profiles = is_given(options, "profile");
    int code;
    if (is_given(options, "endpoint")) return run_endpoint(options);
    memset(&state, 0, sizeof state);
    if (profiles && (code = profiler_check(options)) != 0) return code;
    code = run_prepare(options, &state);
    if (!code && !shows) code = profiles ? profile_run(options, &state) : run_measure(options, &state);
    if (!code && shows) print_prompt(&state);
    else if (!code && !profiles && state.run_count)
        (is_given(options, "json") ? print_run_json : print_run)(options, &state);
    if (!code && interrupted) code = EXIT_INTERRUPTED;
    runs_free(state.runs, state.run_capacity);
    text_list_free(&state.warnings);
    session_free(&state.session);
    model_free(&state.model);
    sample_free(&state.sample);
    if (state.image.rgb) vp_image_free(&state.image);
    knob_values_free(&state.knobs);
    free(state.dump.image_features);
    free(state.dump.deepstack_features);
    free(state.dump.block_last);
    free(state.dump.logits);
    free(state.dump.kept);
    free(state.dump.kept_features);
    return code;
}

const struct command command_run = {
    "run", "[IMAGE] -p TEXT (--model DIR | --synthetic NAME | --endpoint URL)",
    "answer one question and show where the milliseconds go",
    "vlmprof run cat.jpg -p \"What is this?\" --synthetic tiny --max_new_tokens 8\n"
    "  vlmprof run cat.jpg -p \"What is this?\" --model checkpoint --device cuda:0 --num_runs 5 --json\n"
    "  vlmprof run cat.jpg -p \"What is this?\" --synthetic tiny --profile --row_limit 10 --trace trace.json\n"
    "  vlmprof run cat.jpg -p \"What is this?\" --endpoint http://127.0.0.1:8000 --endpoint_model NAME --num_runs 5",
    1, RUN_OPTIONS, sizeof RUN_OPTIONS / sizeof *RUN_OPTIONS, "family", run_command};
