/* command_run.c: shows where the milliseconds go for one image and one question. The options become the settings of one
 * request, which is prepared and timed (measure/input.c, or profile_run with --profile). The answer and the times are
 * printed as text or JSON. */
#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "base/json.h"
#include "results/metrics.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "measure/input.h"
#include "measure/measure.h"
#include "model/model.h"
#include "measure/record.h"
#include "measure/engine.h"
#include "score/scoring.h"
#include "profile/profile.h"
#include "profile/profiler.h"
#include "vlmprof_config.h"
#include "vlmprof_engine.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"

#include <math.h>

static const struct option_spec RUN_OPTIONS[] = {
    OPTION_GROUP("input"),
    OPTION_MODEL,
    OPTION_SYNTHETIC,
    OPTION_PROMPT,
    {"style", TEXT, "S", NULL, 0, 0, NULL, "prompt style: \" User: S: TEXT Assistant:\"", .excludes = "raw_prompt"},
    {"raw_prompt", FLAG, NULL, NULL, 0, 0, NULL, "tokenize TEXT unchanged"},
    {"show_prompt", FLAG, NULL, NULL, 0, 0, NULL,
     "print the prompt's text and token ids as JSON and exit; the model does not run", .excludes = "profile dump"},
    OPTION_GROUP("knobs"),
    OPTION_PREPROCESS,
    OPTION_TIER,
    OPTION_MAX_CROPS,
    OPTION_CROPS,
    OPTION_VISION_TOKENS,
    OPTION_IMAGE_KNOB("NAME=N"),
    KNOB_GRID_ROWS(KNOB_RUN_OPTIONS) OPTION_IMPORTANCE_SCORES_FILE,
    KNOB_EACH_ROWS(KNOB_RUN_OPTIONS) OPTION_GROUP("measuring"),
    {"num_runs", COUNT, "R", NULL, 1, 10000, NULL,
     "timed runs, after one untimed warm-up (default: 1; with --profile 5)"},
    OPTION_COLD,
    OPTION_MAX_NEW_TOKENS,
    OPTION_IGNORE_EOS,
    {"seed", COUNT, "S", "42", 0, UINT32_MAX, NULL, "seed for synthetic weights"},
    OPTION_DEVICE,
    OPTION_THREADS,
    OPTION_GEMM,
    OPTION_GPU,
    RULED_GROUP("profiling", .needs = "profile"),
    {"profile", FLAG, NULL, NULL, 0, 0, NULL,
     "time every operation of the requests that the schedule records; print a table like torch.profiler's instead of "
     "the stages"},
    OPTIONS_OF_OPERATIONS,
    {"profile_format", CHOICE, "FORM", "torch", 0, 0, "torch cprofile csv json folded",
     "torch: a table like key_averages; cprofile: one like cProfile's (ncalls tottime ...); csv; json, which vlmprof "
     "trace can re-sort; folded: stacks in ns for FlameGraph and speedscope",
     .excludes = "json"},
    {"output", TEXT, "FILE", NULL, 0, 0, NULL, "with --profile: file for the table (short: -o)"},
    {"trace", TEXT, "FILE", NULL, 0, 0, NULL, "with --profile: a Chrome trace of the first recorded cycle",
     .excludes = "output_dir"},
    {"html", TEXT, "FILE", NULL, 0, 0, NULL,
     "with --profile: a page with a flame chart over time and the table of operations; it needs no network"},
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL,
     "with --profile: a Chrome trace of each recorded cycle, DIR/profiler_traces/<worker>.<ns>.pt.trace.json"},
    RULED_GROUP("schedule of the profile", .needs = "profile"),
    {"skip_first", COUNT, "N", "0", 0, 1000000, NULL, "schedule: requests to skip before the first cycle"},
    {"wait", COUNT, "N", "0", 0, 1000000, NULL, "schedule: requests per cycle to run unprofiled"},
    {"warmup", COUNT, "N", "1", 0, 1000000, NULL,
     "schedule: requests per cycle to profile and discard; 0 with --cold", .excludes = "cold"},
    {"active", COUNT, "N", "1", 1, 1000000, NULL,
     "schedule: requests per cycle to record after the warm-up; without schedule options: --num_runs"},
    {"repeat", COUNT, "N", "1", 0, 1000000, NULL,
     "schedule: number of cycles; 0: until --num_runs requests are done, including warm-ups"},
    {"schedule_every_n_steps", COUNT, "N", "0", 0, 1000000, NULL,
     "schedule: distance between the starts of cycles, in requests; 0: no gap"},
    OPTION_GROUP("output"),
    {"dump", TEXT, "DIR", NULL, 0, 0, NULL,
     "write inputs, features, residuals, logits and tokens as .npy files (the times then include the copying)",
     .excludes = "profile"},
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

/* One request to the engine, and its runs. */
struct run_state { struct request request; struct timed_runs timed; };

/* Returns the settings of the request; the model and its knobs are checked later. */
static struct request_settings run_settings_of(const struct options *options) {
    static const char *const of_tiles[] = {"preprocess", "tier", "max_crops", "crops"};
    struct request_settings settings = {
        .engine = engine_options_of(options), .images = options->operands, .image_count = options->operand_count,
        .prompt = text_of(options, "prompt"), .style = text_of(options, "style"),
        .is_raw = is_given(options, "raw_prompt"), .has_max_crops = is_given(options, "max_crops"),
        .image_knob = text_of(options, "image_knob"),
        .importance_scores_file = text_of(options, "importance_scores_file"),
        .active_blocks = is_given(options, "active_blocks") ? opt(options, "active_blocks") : NULL,
        .new_tokens = (int32_t)number_of(options, "max_new_tokens"), .ignore_eos = is_given(options, "ignore_eos"),
        .num_runs = (int32_t)number_of(options, "num_runs"), .is_cold = is_given(options, "cold"),
        .dump = text_of(options, "dump")};
    for (int knob = 0; knob < KNOB_EACH_END; knob++)
        if (KNOBS[knob].option && has_option(options, KNOBS[knob].option) && is_given(options, KNOBS[knob].option))
            settings.knobs[knob] = opt(options, KNOBS[knob].option);
    for (size_t i = 0; i < sizeof of_tiles / sizeof *of_tiles && !settings.only_tiled; i++)
        if (is_given(options, of_tiles[i])) settings.only_tiled = of_tiles[i];
    return settings;
}

/* Prints a row of the table: a stage or, with steps > 0, the mean of that many decode steps. TFLOP/s and GB/s are the
 * operations and bytes that the arithmetic needs, divided by the time. Compared with the machine's peaks, they show how
 * far a stage is from the hardware's limit. */
static void print_stage(const struct run_state *state, const char *name, int stage, int32_t steps, double total) {
    const int divisor = steps ? steps : 1, width = state->timed.count < 3 ? 11 : 26;
    struct median_range range = range_of_runs(state->timed.runs, state->timed.count, metric_of, stage_metric(stage, 0));
    double medians[DETAIL_COUNT], ms = range.median / divisor;
    for (int detail = 0; detail < DETAIL_COUNT; detail++)
        medians[detail] =
            range_of_runs(state->timed.runs, state->timed.count, metric_of, stage_metric(stage, detail)).median
            / divisor;
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
static void print_sum(const struct run_state *state, const char *name, int metric, double total) {
    struct median_range range = range_of_runs(state->timed.runs, state->timed.count, metric_of, metric);
    print_plain("%-18s %*s %6.1f%%\n", name, state->timed.count < 3 ? 11 : 26,
                number_measured(range.median, range.low, range.high).text, 100 * range.median / total);
}
static void print_stages(const struct run_state *state) {
    double total = range_of_runs(state->timed.runs, state->timed.count, metric_of, METRIC_TOTAL).median;
    const int is_range = state->timed.count >= 3;
    int32_t steps = state->timed.runs[0].reply.token_count - 1;
    print_plain("\n%-18s %*s %7s %9s %9s %10s %9s %9s %8s%s\n", "stage", is_range ? 26 : 11,
                is_range ? "ms, median [range]" : "ms", "share", "host ms", "launches", "GFLOP", "GB", "TFLOP/s",
                "GB/s", state->request.model.synthetic ? "   (synthetic weights)" : "");
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        char name[32];
        if (is_left_out(METRIC_STAGE + i, metric_of(&state->timed.runs[0], METRIC_STAGE + i))) continue;
        snprintf(name, sizeof name, i == VP_STAGE_DECODE ? "%s (%d step%s)" : "%s", vp_stage_name((vp_stage)i), steps,
                 plural_s((int64_t)steps));
        print_stage(state, name, i, 0, total);
        if (i == VP_STAGE_DECODE && steps > 1) print_stage(state, "  per step", i, steps, total);
    }
    print_sum(state, "unaccounted", METRIC_UNACCOUNTED, total);
    print_sum(state, "total", METRIC_TOTAL, total);
}
/* Prints the line about an image that the model's processor cuts. */
static void print_picture(const struct request *request, const vp_layout *layout) {
    const int has_whole = layout->views > layout->crops;
    if (request->model.config.vit_native)
        print_plain("image    %dx%d -> %dx%d, %d rows x %d cols of tokens of %dx%d\n", layout->width_px,
                    layout->height_px, layout->resized_width_px, layout->resized_height_px, layout->tiling.rows,
                    layout->tiling.cols, request->model.config.geometry.crop_px,
                    request->model.config.geometry.crop_px);
    else
        print_plain("image    %dx%d -> %dx%d, %d view%s of %dx%d (%d rows x %d cols%s)\n", layout->width_px,
                    layout->height_px, layout->resized_width_px, layout->resized_height_px, layout->views,
                    plural_s((int64_t)layout->views), request->model.processor.view_px,
                    request->model.processor.view_px, layout->tiling.rows, layout->tiling.cols,
                    has_whole ? " + the whole image" : "");
}
/* Prints the lines of all images, and the line about tokens. */
static void print_pictures(const struct request *request) {
    const vp_layout *whole = &request->cuts.whole;
    for (int32_t i = 0; i < request->cuts.count; i++) {
        print_picture(request, &request->cuts.each[i]);
        if (request->cuts.count > 1) print_plain("         %d image tokens\n", request->cuts.each[i].image_tokens);
    }
    print_plain("tokens   %d = %d image (%d features, %d separators, %d marker) + %d text\n",
                sequence_of(&request->input), whole->image_tokens, whole->feature_tokens, whole->col_tokens,
                whole->marker_tokens, request->input.tokens.count);
}

static void print_opening(const struct request *request) {
    const vp_opening opening = vp_engine_opening(request->session.engine);
    print_plain("opening  kernels chosen in %.2f s, ", (double)opening.device_ns / 1e9);
    print_plain("weights %s in %.2f s\n", request->model.synthetic ? "drawn" : "loaded",
                (double)opening.weights_ns / 1e9);
}
static void put_opening(vp_json_writer *writer, const struct request *request) {
    const vp_opening opening = vp_engine_opening(request->session.engine);
    PUT(writer, KEY_OBJECT("opening"), KEY("device_ms", (double)opening.device_ns / 1e6),
        KEY("memory_ms", (double)opening.memory_ns / 1e6), KEY("weights_ms", (double)opening.weights_ns / 1e6),
        END_OBJECT);
}

static void print_run(const struct options *options, const struct run_state *state) {
    const struct request *request = &state->request;
    const vp_layout *layout = layout_of(&request->input);
    const struct pass_result *run = &state->timed.runs[0];
    const char *note = vp_engine_device_note(request->session.engine),
               *cpu = gpu_of(request->session.engine) < 0 ? "no CUDA: " : "",
               *activations = request_activations(&request->session, &request->input);
    print_plain("answer   ");
    print_answer(run->answer, run->answer_bytes);
    print_plain("\nmodel    %s%s, %s, ", request->model.name,
                request->model.synthetic ? " (synthetic weights: latency is real, the answer is noise)" : "",
                text_of(options, "weights"));
    if (request->model.config.expert_count)
        print_plain("top_k %d of %d, ", request->input.engine.top_k, request->model.config.expert_count);
    print_plain("blocks %d of %d\n", request->input.engine.active_block_count, request->model.config.block_count);
    print_plain("device   %s%s%s%s%s; gemm %s for 1 row, %s for 1024%s%s\n", vp_engine_device(request->session.engine),
                note[0] ? " (" : "", note[0] ? cpu : "", note, note[0] ? ")" : "",
                vp_engine_gemm(request->session.engine, 1), vp_engine_gemm(request->session.engine, 1024),
                activations ? "; activations " : "", activations ? activations : "");
    print_opening(request);
    if (layout && !request->model.rules->is_tiled) print_pictures(request);
    else if (layout) {
        print_plain("image    %dx%d -> tiling %dx%d (rows x cols), %d crops + global view, canvas %dx%d, %s\n",
                    layout->width_px, layout->height_px, layout->tiling.rows, layout->tiling.cols, layout->crops,
                    layout->canvas_width_px, layout->canvas_height_px,
                    request->tiles.tier ? request->tiles.tier->name : text_of(options, "preprocess"));
        print_plain("tokens   %d = 1 BOS + %d image (%d features, %d column, %d marker) + %d text; theoretical vision "
                    "tokens %d\n",
                    sequence_of(&request->input), layout->image_tokens, layout->feature_tokens, layout->col_tokens,
                    layout->marker_tokens, request->input.tokens.count, layout->theoretical_tokens);
    } else
        print_plain("tokens   %d = %s%d text, no image\n", sequence_of(&request->input),
                    request->input.tokens.no_bos ? "" : "1 BOS + ", request->input.tokens.count);
    if (request->input.prune.how.method != VP_PRUNE_NONE) {
        struct text_buffer pruned = {NULL, 0, 0};
        prune_text(&pruned, &request->pruned);
        print_plain("prune    %s: %s\n", knob_text(&request->knobs, KNOB_PRUNE), pruned.data);
        free(pruned.data);
    }
    print_plain("output   %d token%s%s\n", run->reply.token_count, plural_s((int64_t)run->reply.token_count),
                run->reply.ended_by_eos ? ", the last is EOS" : "");
    print_stages(state);
    runs_print(&state->timed);
    runs_print_terms(&state->timed);
}

static void print_run_json(const struct options *options, const struct run_state *state) {
    const struct request *request = &state->request;
    vp_score_outcome scored;
    struct scoring scoring;
    const vp_layout *layout = layout_of(&request->input);
    const struct point point = {.sample = &request->sample,
                                .cuts = request->input.cuts,
                                .knobs = &request->knobs,
                                .activations = request_activations(&request->session, &request->input),
                                .target_tokens = layout ? target_tokens_of(&request->tiles, layout) : 0,
                                .target_crops = layout ? layout->crops : 0,
                                .runs = state->timed.runs,
                                .run_count = state->timed.count,
                                .metric = VP_SCORE_VQA_SEED,
                                .ignore_eos = is_given(options, "ignore_eos")};
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-run-2"), KEY("model", request->model.name),
        KEY("architecture", vp_architecture_name(request->model.config.architecture)),
        KEY_BOOL("synthetic", request->model.synthetic));
    put_answer(&writer, "answer", &state->timed.runs[0]);
    put_images(&writer, &request->sample);
    PUT(&writer, KEY("preprocess", !request->model.rules->is_tiled ? NULL
                                   : request->tiles.tier           ? "tier"
                                                                   : text_of(options, "preprocess")));
    knob_put(&writer, KNOB_IMAGE, &request->knobs);
    knob_put_more(&writer, KNOB_IMAGE, &request->knobs);
    knob_put_more(&writer, KNOB_BLOCKS, &request->knobs);
    put_point_layout(&writer, &point);
    if (request->input.prune.how.method != VP_PRUNE_NONE) {
        PUT(&writer, KEY_OBJECT("pruned"));
        knob_put(&writer, KNOB_PRUNE, &request->knobs);
        prune_put(&writer, &request->pruned);
        vp_json_end_object(&writer);
    }
    put_point_tokens(&writer, &point);
    score_point(&point, &scoring, &scored);
    put_point_answer(&writer, &point, &scored);
    scoring_free(&scoring);
    runs_put_count(&writer, &state->timed);
    runs_put_rates(&writer, &state->timed);
    put_point_times(&writer, &point);
    runs_put_medians(&writer, &state->timed);
    put_opening(&writer, request);
    runs_put_end(&writer, options, &state->timed, request->session.engine, &request->settings->engine, NULL);
}

/* --show_prompt: prints the prompt's text, its ids as in struct prompt_tokens, and the sequence length. */
static void print_prompt(const struct request *request) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 0);
    PUT(&writer, KEY_OBJECT(NULL), KEY("prompt_text", request->sample.prompt));
    put_ints(&writer, "ids", request->input.tokens.ids,
             request->input.tokens.no_bos ? sequence_of(&request->input) : request->input.tokens.count);
    PUT(&writer, KEY("text_tokens", request->input.tokens.count),
        KEY("image_tokens", layout_of(&request->input) ? layout_of(&request->input)->image_tokens : 0),
        KEY("total_sequence_length", sequence_of(&request->input)), END_OBJECT);
    json_end(&writer); /* main checks stdout */
}
static int run_command(const struct options *options) {
    struct request_settings settings = run_settings_of(options);
    struct run_state state = {.request.settings = &settings};
    const int shows = is_given(options, "show_prompt"), profiles = is_given(options, "profile");
    struct profile_settings profile;
    int code;
    if (profiles && (code = profile_settings_read(options, &profile)) != 0) return code;
    if (!settings.prompt) return complain(EXIT_USAGE, "run needs a question: -p TEXT");
    if ((code = tile_options_of(options, &settings.tiles)) != 0 || (code = check_engine_options(options)) != 0)
        return code;
    code = model_load(options, &state.request.model);
    if (!code) code = request_prepare(&state.request);
    if (!code && !shows)
        code = profiles ? profile_run(&profile, &state.request) : request_measure(&state.request, &state.timed);
    if (!code && shows) print_prompt(&state.request);
    else if (!code && !profiles && state.timed.count)
        (is_given(options, "json") ? print_run_json : print_run)(options, &state);
    if (!code && interrupted) {
        if (!profiles) runs_print_interrupted(&state.timed);
        code = EXIT_INTERRUPTED;
    }
    runs_close(&state.timed);
    request_close(&state.request);
    return code;
}

const struct command command_run = {
    "run", "[IMAGE...] -p TEXT (--model DIR | --synthetic NAME)",
    "answer one question and show where the milliseconds go",
    "vlmprof run cat.jpg -p \"What is this?\" --model checkpoint --num_runs 5\n"
    "  vlmprof run cat.jpg -p \"What is this?\" --synthetic tiny --profile --row_limit 10 --html profile.html",
    IMAGES_MOST, COMMAND_OPTIONS(RUN_OPTIONS), NULL, run_command,
    "model synthetic prompt tier max_crops crops vision_tokens image_knob top_k num_active_blocks weights prune "
    "num_runs max_new_tokens ignore_eos device threads profile sort_by row_limit group_by trace html dump json"};
