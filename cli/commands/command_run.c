/* command_run.c: one image, one question, and where the milliseconds go. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "request/dump.h"
#include "request/input.h"
#include "request/model.h"
#include "request/prompt.h"
#include "request/provenance.h"
#include "request/record.h"
#include "request/request.h"
#include "score/scoring.h"
#include "sweep/profile.h"
#include "tile/image.h"
#include "tile/tile_options.h"
#include "vlmprof.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const option_spec RUN_OPTIONS[] = {
    OPTION_MODEL,
    OPTION_SYNTHETIC,
    {"prompt", TEXT, "TEXT", NULL, 0, 0, NULL, "the question (short: -p)"},
    {"style", TEXT, "S", NULL, 0, 0, NULL, "prompt style: \" User: S: TEXT Assistant:\""},
    {"raw_prompt", FLAG, NULL, NULL, 0, 0, NULL, "tokenize TEXT as it is"},
    {"show_prompt", FLAG, NULL, NULL, 0, 0, NULL,
     "print the prompt's text and ids as JSON and end; the model does not run"},
    OPTION_PREPROCESS,
    OPTION_TIER,
    OPTION_MAX_CROPS,
    OPTION_CROPS,
    OPTION_VISION_TOKENS,
    {"top_k", COUNT, "K", NULL, 1, 1000000, NULL, "experts a token uses (default: as trained)"},
    {"num_active_blocks", COUNT, "N", NULL, 1, 1000000, NULL,
     "decoder blocks that run: the first N, or by importance (default: all)"},
    {"active_blocks", COUNTS, "I,J,...", NULL, 0, 1000000, NULL, "decoder blocks that run, by index"},
    OPTION_IMPORTANCE_SCORES_FILE,
    {"num_runs", COUNT, "R", "1", 1, 10000, NULL, "timed runs; more than one adds an untimed warm-up"},
    {"max_new_tokens", COUNT, "N", "32", 1, 1000000, NULL, "most tokens of the answer"},
    OPTION_IGNORE_EOS,
    OPTION_WEIGHTS,
    OPTION_SEED,
    OPTION_DEVICE,
    OPTION_THREADS,
    OPTION_GEMM,
    {"dump", TEXT, "DIR", NULL, 0, 0, NULL,
     "write inputs, features, residuals, logits and tokens as .npy (copying is inside the times)"},
    {"profile", FLAG, NULL, NULL, 0, 0, NULL,
     "time every operation: torch.profiler's table instead of the stages, of the requests that the schedule records"},
    OPTION_SORT_BY,
    OPTION_ROW_LIMIT,
    OPTION_GROUP_BY,
    OPTION_GROUP_BY_INPUT_SHAPE,
    OPTION_GROUP_BY_STACK_N,
    OPTION_RECORD_SHAPES,
    OPTION_PROFILE_MEMORY,
    OPTION_WITH_STACK,
    {"profile_format", CHOICE, "FORM", "torch", 0, 0, "torch cprofile csv json",
     "key_averages' table, cProfile's (ncalls tottime ...), csv, or json, which vlmprof trace sorts again"},
    {"output", TEXT, "FILE", NULL, 0, 0, NULL, "with --profile: write the table there (short: -o)"},
    {"trace", TEXT, "FILE", NULL, 0, 0, NULL, "with --profile: a Chrome trace of the first recorded cycle"},
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL,
     "with --profile: a Chrome trace of each recorded cycle, DIR/profiler_traces/<worker>.<ns>.pt.trace.json"},
    {"chrome_trace", FLAG, NULL, NULL, 0, 0, NULL,
     "with --output_dir: the trace of the first cycle as DIR/chrome_trace.json instead"},
    OPTION_TRACE_MAX_BYTES,
    {"skip_first", COUNT, "N", "0", 0, 1000000, NULL, "schedule: requests before the first cycle"},
    {"wait", COUNT, "N", "0", 0, 1000000, NULL, "schedule: a cycle's requests that run as ever"},
    {"warmup", COUNT, "N", "1", 0, 1000000, NULL, "schedule: then so many with every operation timed, thrown away"},
    {"active", COUNT, "N", "1", 1, 1000000, NULL, "schedule: then so many that are recorded"},
    {"repeat", COUNT, "N", "1", 0, 1000000, NULL, "schedule: cycles; 0: until --num_runs requests are done"},
    {"schedule_every_n_steps", COUNT, "N", "0", 0, 1000000, NULL,
     "schedule: cycles begin so many requests apart; 0: one after the other"},
    {"cost", FLAG, NULL, NULL, 0, 0, NULL,
     "with --profile: what each mode costs (off, stage, op, trace), by runs in random order"},
    {"cost_rounds", COUNT, "N", "20", 2, 100000, NULL, "with --cost: rounds of a run in each mode"},
    OPTION_JSON,
    OPTION_HELP,
};

static int run_choose_knobs(const options *o, run_state *x) {
    const vp_model_config *c = &x->m.config;
    int64_t top_k = given(o, "top_k") ? number_of(o, "top_k") : c->top_k;
    const option_value *list = opt(o, "active_blocks");
    if (top_k > c->expert_count) return complain(EXIT_USAGE, "--top_k %lld: the model has %d experts", (long long)top_k, c->expert_count);
    if (list->given && (given(o, "num_active_blocks") || given(o, "importance_scores_file")))
        return complain(EXIT_USAGE, "--active_blocks names the blocks; leave --num_active_blocks and --importance_scores_file out");
    x->k.top_k = (int32_t)top_k;
    x->blocks = resize(NULL, (size_t)c->block_count, sizeof *x->blocks);
    x->k.blocks = x->blocks;
    if (!list->given) {
        x->k.block_count = given(o, "num_active_blocks") ? (int32_t)number_of(o, "num_active_blocks") : c->block_count;
        return model_choose_blocks(o, &x->m, x->k.block_count, x->blocks);
    }
    for (int32_t b = 0; b < c->block_count; b++)
        for (size_t i = 0; i < list->count; i++) if (list->numbers[i] == b) x->blocks[x->k.block_count++] = b;
    for (size_t i = 0; i < list->count; i++)
        if (list->numbers[i] >= c->block_count)
            return complain(EXIT_USAGE, "--active_blocks %lld: the model has blocks 0..%d", (long long)list->numbers[i], c->block_count - 1);
    return 0;
}

/* options -> plan of one request; nothing big is loaded yet */
static int run_prepare(const options *o, run_state *x) {
    vp_error error = {VP_OK, -1, "", ""};
    const char *text = text_of(o, "prompt"), *style = text_of(o, "style"), *image = o->operand_count ? o->operands[0] : NULL;
    char reason[LINE_BYTES];
    vp_result r;
    int code;
    if (!text) return complain(EXIT_USAGE, "run needs a question: -p TEXT");
    if (style && given(o, "raw_prompt")) return complain(EXIT_USAGE, "--style and --raw_prompt exclude each other");
    if ((code = tile_options_of(o, &x->tiles)) != 0 || (code = check_device(o)) != 0 || (code = check_gemm(o)) != 0) return code;
    if ((code = model_load(o, &x->m)) != 0 || (code = run_choose_knobs(o, x)) != 0) return code;
    if (!given(o, "max_crops") && x->tiles.rule == VP_TILE_ADAPTIVE) x->tiles.max_crops = x->m.config.geometry.max_crops;
    x->a.prompt = given(o, "raw_prompt") ? copy_text(text, strlen(text)) : make_prompt(style, text);
    x->a.question = copy_text(text, strlen(text));
    if ((code = tokenize_prompt(&x->m, &x->a)) != 0) return code;
    if (image) {
        x->a.image_path = copy_text(image, strlen(image));
        if ((code = load_image(image, &x->image, reason, sizeof reason)) != 0) return complain(code, "%s", reason);
        x->a.width_px = x->image.width_px;
        x->a.height_px = x->image.height_px;
        r = vp_layout_compute(&x->m.config.geometry, &x->tiles, x->image.width_px, x->image.height_px, &x->layout, &error);
        if (r != VP_OK) return complain_result(EXIT_INPUT, image, r, &error);
        x->k.image = &x->image;
        x->k.layout = &x->layout;
    }
    x->k.text_ids = x->a.text_ids;
    x->k.text_count = x->a.text_count;
    x->k.new_tokens = (int32_t)number_of(o, "max_new_tokens");
    x->k.ignore_eos = given(o, "ignore_eos");
    if ((code = check_sequence(&x->m, &x->k)) != 0) return code;
    return text_of(o, "dump") ? make_folder(text_of(o, "dump")) : 0;
}

static int run_measure(const options *o, run_state *x) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = VP_OK;
    int code;
    x->run_count = (int32_t)number_of(o, "num_runs");
    x->runs = timings_make(x->run_count, x->k.new_tokens);
    if ((code = engine_open(o, &x->m, sequence_of(&x->k) + x->k.new_tokens, x->k.layout ? x->layout.views : 1, &x->s.engine)) != 0) return code;
    x->s.m = &x->m;
    if (x->run_count > 1) r = request_run(&x->s, &x->k, &x->runs[0], &error); /* warm-up; its times are overwritten */
    if (text_of(o, "dump")) {
        dump_reserve(&x->dump, &x->m, &x->k);
        x->k.dump = &x->dump;
    }
    for (int32_t i = 0; i < x->run_count && r == VP_OK; i++) {
        show_progress("run %d of %d", i + 1, x->run_count);
        r = request_run(&x->s, &x->k, &x->runs[i], &error);
    }
    close_progress();
    if (r != VP_OK) return complain_result(exit_code_of(r), NULL, r, &error);
    return text_of(o, "dump") ? dump_write(text_of(o, "dump"), &x->s, &x->k, &x->runs[x->run_count - 1], &x->dump) : 0;
}

/* A row of the table: of a stage, or with steps > 0 of one of so many decode steps. TFLOP/s and GB/s are what the arithmetic needs per time:
 * beside the machine's peaks they show how far a stage is from the hardware. */
static void print_stage(const run_state *x, const char *name, int stage, int32_t steps, double total) {
    double v[DETAIL_COUNT], ms;
    for (int d = 0; d < DETAIL_COUNT; d++) v[d] = metric_mean(x->runs, x->run_count, stage_metric(stage, d)) / (steps ? steps : 1);
    ms = v[0];
    if (!isfinite(ms)) printf("%-18s %11s %8s %11s %9s %10s %9s %9s %8s\n", name, "-", "-", "-", "-", "-", "-", "-", "-");
    else if (is_host_stage(stage))
        printf("%-18s %11.3f %7.2f%% %11.3f %9s %10s %9s %9s %8s\n", name, ms, 100 * ms / total, v[DETAIL_WALL], "-", "-", "-", "-", "-");
    else
        printf("%-18s %11.3f %7.2f%% %11.3f %9.0f %10.4g %9.4g %9.3g %8.3g\n", name, ms, 100 * ms / total, v[DETAIL_WALL], v[DETAIL_LAUNCHES],
               v[DETAIL_FLOPS] / 1e9, v[DETAIL_BYTES] / 1e9, ms > 0 ? v[DETAIL_FLOPS] / ms / 1e9 : 0.0, ms > 0 ? v[DETAIL_BYTES] / ms / 1e6 : 0.0);
}

static void print_stages(const run_state *x) {
    double total = metric_mean(x->runs, x->run_count, METRIC_TOTAL), per_token = metric_mean(x->runs, x->run_count, METRIC_PER_TOKEN);
    double unaccounted = metric_mean(x->runs, x->run_count, METRIC_UNACCOUNTED);
    int32_t steps = x->runs[0].token_count - 1;
    printf("\n%-18s %11s %8s %11s %9s %10s %9s %9s %8s%s\n", "stage", "ms", "share", "host ms", "launches", "GFLOP", "GB", "TFLOP/s", "GB/s",
           x->m.synthetic ? "   (synthetic weights)" : "");
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, i == VP_STAGE_DECODE ? "%s (%d step%s)" : "%s", vp_stage_name((vp_stage)i), steps, steps == 1 ? "" : "s");
        print_stage(x, name, i, 0, total);
        if (i == VP_STAGE_DECODE && steps > 1) print_stage(x, "  a step", i, steps, total);
    }
    printf("%-18s %11.3f %7.2f%%\n", "unaccounted", unaccounted, 100 * unaccounted / total);
    printf("%-18s %11.3f %7.2f%%\n\n", "total", total, 100.0);
    printf("closure  sum of stages / total = %.5f; total: decoded image to text, %s\n", metric_mean(x->runs, x->run_count, METRIC_CLOSURE),
           x->run_count > 1 ? "mean of the runs after a warm-up" : "one cold run (--num_runs R warms up and repeats)");
    printf("TTFT     %.3f ms\n", metric_mean(x->runs, x->run_count, METRIC_TTFT));
    if (isfinite(per_token)) printf("TPOT     %.3f ms a token, %.2f tokens/s\n", per_token, 1000 / per_token);
    else printf("TPOT     -, one token has no decode step\n");
}

static void print_run(const options *o, const run_state *x) {
    const vp_layout *l = x->k.layout;
    const timing *t = &x->runs[0];
    const char *note = vp_engine_device_note(x->s.engine), *cpu = gpu_of(x->s.engine) < 0 ? "no CUDA: " : "";
    printf("answer   ");
    print_visible(t->answer, t->answer_bytes);
    printf("\nmodel    %s%s, %s, top_k %d of %d, blocks %d of %d\n", x->m.name,
           x->m.synthetic ? " (synthetic weights: latency is real, the answer is noise)" : "",
           text_of(o, "weights"), x->k.top_k, x->m.config.expert_count, x->k.block_count, x->m.config.block_count);
    printf("device   %s%s%s%s%s; gemm %s for 1 row, %s for 1024\n", vp_engine_device(x->s.engine), note[0] ? " (" : "", note[0] ? cpu : "", note,
           note[0] ? ")" : "", vp_engine_gemm(x->s.engine, 1), vp_engine_gemm(x->s.engine, 1024));
    if (l) {
        printf("image    %dx%d -> tiling %dx%d (rows x cols), %d crops + global view, canvas %dx%d, %s\n", l->width_px, l->height_px, l->tiling.rows,
               l->tiling.cols,
               l->crops, l->canvas_width_px, l->canvas_height_px, x->tiles.tier ? x->tiles.tier->name : text_of(o, "preprocess"));
        printf("tokens   %d = 1 BOS + %d image (%d features, %d column, %d marker) + %d text; theoretical vision tokens %d\n", sequence_of(&x->k),
               l->image_tokens,
               l->feature_tokens, l->col_tokens, l->marker_tokens, x->k.text_count, l->theoretical_tokens);
    } else printf("tokens   %d = 1 BOS + %d text, no image\n", sequence_of(&x->k), x->k.text_count);
    printf("output   %d token%s%s\n", t->token_count, t->token_count == 1 ? "" : "s", t->ended_by_eos ? ", the last is EOS" : "");
    print_stages(x);
}

static void print_run_json(const options *o, const run_state *x) {
    vp_score_outcome scored;
    scoring s;
    point p = {&x->a, x->k.layout, x->tiles.tier ? x->tiles.tier->name : NULL, 0, 0, x->k.top_k, x->k.blocks, x->k.block_count, x->runs, x->run_count,
               NULL, VP_SCORE_VQA_SEED, given(o, "ignore_eos")};
    double per_token = metric_mean(x->runs, x->run_count, METRIC_PER_TOKEN);
    vp_json_writer w;
    if (p.layout) {
        p.target_tokens = target_tokens_of(&x->tiles, p.layout);
        p.target_crops = p.layout->crops;
    }
    vp_json_writer_init_sink(&w, file_sink, stdout, 2);
    vp_json_begin_object(&w);
    put_text(&w, "schema", "vlmprof-run-1");
    put_text(&w, "model", x->m.name);
    put_bool(&w, "synthetic", x->m.synthetic);
    put_answer(&w, "answer", &x->runs[0]);
    put_text(&w, "image", x->a.image_path);
    if (p.layout) put_pair(&w, "image_size", x->a.height_px, x->a.width_px); else put_null(&w, "image_size");
    put_text(&w, "preprocess", x->tiles.tier ? "tier" : text_of(o, "preprocess"));
    put_ints(&w, "active_block_indices", x->k.blocks, x->k.block_count);
    put_point_layout(&w, &p);
    put_point_tokens(&w, &p);
    score_point(&p, &s, &scored);
    put_point_answer(&w, &p, &scored);
    scoring_free(&s);
    put_bool(&w, "warm", x->run_count > 1);
    put_double(&w, "tokens_per_second", 1000 / per_token);
    put_point_times(&w, &p);
    vp_json_key(&w, "provenance");
    vp_json_begin_object(&w);
    put_provenance(&w, o, x->s.engine);
    vp_json_end_object(&w);
    put_config(&w, o);
    vp_json_end_object(&w);
    vp_json_finish(&w);
    putchar('\n');
}

/* what would be asked: the text, its ids (they follow BOS and the image's tokens), and the length of the whole */
static void print_prompt(const run_state *x) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, file_sink, stdout, 0);
    vp_json_begin_object(&w);
    put_text(&w, "prompt_text", x->a.prompt);
    put_ints(&w, "ids", x->k.text_ids, x->k.text_count);
    put_int(&w, "text_tokens", x->k.text_count);
    put_int(&w, "image_tokens", x->k.layout ? x->k.layout->image_tokens : 0);
    put_int(&w, "total_sequence_length", sequence_of(&x->k));
    vp_json_end_object(&w);
    vp_json_finish(&w);
    putchar('\n');
}
static int run_command(const options *o) {
    run_state x;
    int code, shows = given(o, "show_prompt"), profiles = given(o, "profile");
    memset(&x, 0, sizeof x);
    if (shows && (given(o, "dump") || profiles))
        return complain(EXIT_USAGE, "--show_prompt does not run the model: leave --%s out", profiles ? "profile" : "dump");
    if ((code = profile_check(o)) != 0) return code;
    code = run_prepare(o, &x);
    if (!code && !shows) code = profiles ? profile_run(o, &x) : run_measure(o, &x);
    if (!code && shows) print_prompt(&x);
    else if (profiles) {} /* has told already */
    else if (!code && given(o, "json")) print_run_json(o, &x);
    else if (!code) print_run(o, &x);
    timings_free(x.runs, x.run_count);
    session_free(&x.s);
    model_free(&x.m);
    sample_free(&x.a);
    if (x.image.rgb) vp_image_free(&x.image);
    free(x.blocks);
    free(x.dump.image_features);
    free(x.dump.block_last);
    free(x.dump.logits);
    return code;
}

const command command_run = {
    "run", "[IMAGE] -p TEXT (--model DIR | --synthetic NAME)",
    "answer one question and show where the milliseconds go",
    "vlmprof run cat.jpg -p \"What is this?\" --synthetic tiny --max_new_tokens 8\n"
    "  vlmprof run cat.jpg -p \"What is this?\" --model checkpoint --device cuda:0 --num_runs 5 --json\n"
    "  vlmprof run cat.jpg -p \"What is this?\" --synthetic tiny --profile --row_limit 10 --trace trace.json",
    1, RUN_OPTIONS, sizeof RUN_OPTIONS / sizeof *RUN_OPTIONS, NULL, run_command};
