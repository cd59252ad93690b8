/* command_sweep.c: measures a grid of knobs over a data set, in one process or as one of several. The options become
 * settings and a plan (sweep_plan), sweep/sweep_run.c measures it and writes the result files, and a summary is
 * printed. */
#include "base/console.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "model/model.h"
#include "score/score_rules.h"
#include "server/endpoint.h"
#include "sweep/sweep.h"
#include "vlmprof_engine.h"
#include "vlmprof_score.h"

static const struct option_spec SWEEP_OPTIONS[] = {
    OPTION_GROUP("input"),
    OPTION_MODEL,
    OPTION_SYNTHETIC,
    {"data", WHOLE_TEXTS, "FILE...", NULL, 0, 0, NULL,
     "JSONL (per line: id, image or images, question, answers, options, style, dataset), VQA v2's question file, or a "
     "folder of images with -p",
     .is_required = 1},
    {"annotations", TEXT, "FILE", NULL, 0, 0, NULL,
     "VQA v2's annotations file (default: the official file name, next to the questions file)"},
    {"image_dir", TEXT, "DIR", NULL, 0, 0, NULL,
     "base folder for relative image paths; for VQA v2, the folder with COCO_val2014_*.jpg or the subfolder val2014"},
    {"allow_outside", FLAG, NULL, NULL, 0, 0, NULL, "allow image paths that leave the image folder via .."},
    {"dataset_name", TEXT, "NAME", NULL, 0, 0, NULL,
     "task name for the result files (default: the data file's stem); a known task (text_vqa ...) sets style, metric, "
     "max_new_tokens"},
    {"prompt", TEXT, "TEXT", NULL, 0, 0, NULL, "the question for each image of a folder (short: -p)"},
    {"style", TEXT, "S", NULL, 0, 0, NULL, "prompt style for records without one (default: the data set's)", OF_ENGINE},
    {"metric", TEXT, "M", NULL, 0, 0, NULL,
     "scoring rule for the accuracy (default: the data set's; if unknown, mc with options, else vqa_seed)"},
    {"num_samples", COUNT, "N", "1000", 1, INT32_MAX, NULL,
     "samples drawn from each data file, the same for all configurations"},
    {"stratify_by", TEXT, "FIELD", NULL, 0, 0, NULL, "keep this field's proportions when drawing samples"},
    RULED_GROUP("servers", .needs = "endpoint"),
    {"endpoint", TEXTS, "URL...", NULL, 0, 0, NULL,
     "servers to measure instead of a model: vLLM, SGLang, llama.cpp, TGI, Ollama, ...; see vlmprof help servers"},
    {"endpoint_model", TEXTS, "NAME...", NULL, 0, 0, NULL,
     "model names on the servers: one for all servers, several for one server, or one for each server in order "
     "(default: each server's only model)"},
    OPTIONS_OF_CLIENT,
    OPTION_REQUEST_KNOB,
    {"family", TEXT, "NAME", NULL, 0, 0, NULL,
     "model family whose rule counts image tokens, also for --vision_tokens_list; its limits are options, such as "
     "--max_pixels"},
    KNOB_LOAD_ROWS(KNOB_SWEEP_OPTIONS)
    {"arrivals", CHOICE, "HOW", "poisson", 0, 0, "poisson uniform",
     "with --request_rate_list: poisson (exponentially distributed gaps) or uniform (equal gaps)",
     .needs = "request_rate_list"},
    {"ramp_s", REAL, "S", "5", 0, 3600, NULL,
     "under load: seconds before and after each block in which requests are sent but not counted"},
    OPTIONS_OF_LAUNCH,
    {"answer_hint", TEXT, "TEXT", NULL, 0, 0, NULL,
     "text added below each question, such as \"Answer with a single word or phrase.\"; scoring rules for short "
     "answers need one"},
    {"no_cache", FLAG, NULL, NULL, 0, 0, NULL, "ask the servers not to use their prompt caches"},
    OPTION_SAME_IMAGE,
    OPTION_TWINS,
    OPTION_GROUP("knobs"),
    KNOB_GRID_ROWS(KNOB_SWEEP_OPTIONS) OPTION_IMPORTANCE_SCORES_FILE,
    {"sampling_strategy", CHOICE, "NAME", "full", 0, 0, "full balanced stratified boundary custom_sparse lhs seed_lhs",
     "which points of the grid to measure: full, balanced, stratified, boundary, custom_sparse, lhs (Latin hypercube), "
     "seed_lhs"},
    KNOB_EACH_ROWS(KNOB_SWEEP_OPTIONS)
    {"knob", WHOLE_TEXTS, "NAME=V1,V2...", NULL, 0, 0, NULL,
     "with --server: a start-up option as a knob; otherwise, a setting of your own: one value (blur=3) for the whole "
     "sweep, or one for each --data file; reports treat it as a knob"},
    {"choices", TEXT, "FILE", NULL, 0, 0, NULL,
     "run a policy and write policy-NAME.json: each sample runs under the configuration named on its line, alternating "
     "with the one on the \"static\" line, as in vlmprof policy's choices.jsonl",
     .excludes = "request_rate_list concurrency_list server baseline kernel_pass"},
    OPTION_GROUP("measuring"),
    {"num_runs_per_sample", COUNT, "R", "3", 1, 10000, NULL,
     "timed runs of every point; with --stop_half_width the minimum"},
    {"stop_half_width", REAL, "PERCENT", "0", 0, 100, NULL,
     "repeat a point until the 95 % interval of its median T_total is within +-PERCENT; 0: always "
     "--num_runs_per_sample runs"},
    {"max_runs", COUNT, "N", "100", 1, 10000, NULL, "with --stop_half_width: maximum number of runs per point",
     .needs = "stop_half_width"},
    {"time_box_s", REAL, "S", "0", 0, 1000000, NULL,
     "with --stop_half_width: time limit for the runs of a point, in seconds; 0: no limit", .needs = "stop_half_width"},
    {"timing", CHOICE, "MODE", "stage", 0, 0, "stage off", "stage: time every stage; off: time only the whole request",
     OF_ENGINE},
    {"bare_every", COUNT, "N", "8", 0, 1000000, NULL,
     "run every Nth point twice more, with and without stage times, to measure the tool's own overhead; 0: never",
     OF_ENGINE},
    {"kernel_pass", FLAG, NULL, NULL, 0, 0, NULL,
     "make one more run per shape and configuration with every kernel timed, for the device's idle share", OF_ENGINE},
    {"baseline", TEXT, "WHICH", NULL, 0, 0, NULL,
     "compare the answers and next-token distributions of each configuration with a baseline: first (configuration "
     "of the grid), a configuration's file name, or a folder or file of earlier results, which have only answers"},
    {"max_new_tokens", COUNT, "N", NULL, 1, 1000000, NULL,
     "maximum tokens per answer (default: the data set's, else 16)"},
    OPTION_IGNORE_EOS,
    {"max_retries", COUNT, "N", "2", 0, 100, NULL, "retries per run after a device error before the point fails"},
    {"retry_failed", FLAG, NULL, NULL, 0, 0, NULL, "measure failed points again"},
    OPTION_SEED,
    OPTION_DEVICE,
    OPTION_THREADS,
    OPTION_GEMM,
    OPTION_GPU,
    RULED_GROUP("profiling", .needs = "use_profiler", .excludes = "endpoint",
                .because = "only vlmprof's own engine records operations"),
    {"use_profiler", FLAG, NULL, NULL, 0, 0, NULL,
     "profile the first sample of each configuration, operation by operation, into "
     "profiler_results_config_<i>_sample_<j>.txt"},
    {"use_profiler_on_all_samples", FLAG, NULL, NULL, 0, 0, NULL, "with --use_profiler: profile every sample"},
    OPTIONS_OF_OPERATIONS,
    {"trace", FLAG, NULL, NULL, 0, 0, NULL, "with --use_profiler: a Chrome trace per sample, in profiler_traces"},
    OPTION_GROUP("output"),
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL, "folder for the result files and the journal", .is_required = 1,
     .unless = "plan"},
    {"plan", FLAG, NULL, NULL, 0, 0, NULL,
     "print the grid, its memory use and expected time, and the differences that the samples can resolve; nothing is "
     "measured or written"},
    {"json", FLAG, NULL, NULL, 0, 0, NULL,
     "print a JSON object instead of the table: files, P50s, accuracies; with --plan the plan"},
    OPTIONS_WITH_QUIET("print only errors on stderr, and no table"),
};

/* Prints the summary as JSON. Returns `code`, or the exit code of an error. */
static int print_summary(const struct sweep *sweep, const struct text_list *warnings, int code) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 1);
    PUT(&writer, KEY_OBJECT(NULL), KEY("output_dir", sweep->settings.output_dir),
        KEY("status", code ? "complete with failures" : "complete"), KEY("journal", sweep->journal.path),
        KEY("rank", sweep->rank.rank), KEY("world_size", sweep->rank.world_size), KEY_BOOL("merged", sweep->has_merged),
        KEY("points", sweep->point_count), KEY("measured_now", (int64_t)(sweep->done - sweep->done_before)),
        KEY("runs_now", sweep->runs_now), KEY("failed", sweep->failed), KEY_BOOL("synthetic", sweep->model.synthetic));
    summaries_put(&writer, &sweep->results);
    PUT(&writer, KEY_TEXTS("warnings", warnings), END_OBJECT);
    return json_end(&writer) ? EXIT_OUTPUT : code;
}
/* Prints what was measured. Returns the exit code of the sweep. */
static int sweep_report(const struct sweep *sweep) {
    int code = sweep->failed ? EXIT_WORK : 0, unwritten = 0;
    char rank[64] = "";
    struct text_list warnings = {NULL, 0};
    if (interrupted) {
        sweep_message(sweep, "interrupted", "");
        return EXIT_INTERRUPTED;
    }
    if (sweep->rank.world_size > 1)
        snprintf(rank, sizeof rank, "rank %d of %d: ", sweep->rank.rank, sweep->rank.world_size);
    if (!is_given(sweep->options, "quiet") && !is_given(sweep->options, "json"))
        unwritten = summaries_print(&sweep->results);
    summaries_warn(&sweep->results, &warnings);
    for (size_t i = 0; i < warnings.count; i++) complain(0, "%s", warnings.items[i]);
    const int is_loaded = sweep->results.is_loaded; /* a point may be measured partly before, partly now */
    print_note("vlmprof: %s%zu configuration%s, %zu point%s (%lld %smeasured now, %lld failed) in %s%s; next: vlmprof "
               "report %s\n",
               rank, sweep->plan.configuration_count, plural_s((int64_t)sweep->plan.configuration_count),
               sweep->point_count, plural_s((int64_t)sweep->point_count),
               is_loaded ? (long long)sweep->runs_now : (long long)(sweep->done - sweep->done_before),
               is_loaded ? "requests " : "",
               (long long)sweep->failed, sweep->settings.output_dir,
               sweep->model.synthetic ? "; synthetic weights: latency is real, accuracy is not" : "",
               sweep->settings.output_dir);
    if (sweep->plan.repeats)
        print_note("vlmprof: %s repeats points %zu times; each was measured once\n",
                   text_of(sweep->options, "sampling_strategy"), sweep->plan.repeats);
    if (sweep->failed)
        complain(EXIT_WORK, "failed points are rows with status \"failed\" and a reason in the result files; "
                            "--retry_failed measures them again%s", sweep->first_failure);
    if (is_given(sweep->options, "json")) code = print_summary(sweep, &warnings, code);
    else if (unwritten) code = unwritten;
    text_list_free(&warnings);
    return code;
}
/* Finds this process's part of the sweep and the device it runs on. Returns 0 or an exit code. */
static int sweep_rank(struct sweep *sweep) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = launched_read(environment, NULL, &sweep->rank, &error);
    const char *device = text_of(sweep->options, "device");
    int32_t visible = 0, index;
    if (result != VP_OK) return complain_result(EXIT_USAGE, "environment", result, &error);
    snprintf(sweep->device, sizeof sweep->device, "%s", device);
    if (sweep->rank.world_size < 2 || (strcmp(device, "auto") && strcmp(device, "cuda"))
        || vp_device_count(&visible, NULL) != VP_OK)
        return 0;
    index = launched_device(&sweep->rank, visible);
    /* started by hand with only RANK and WORLD_SIZE: GPUs are assigned to ranks in turn */
    if (index < 0 && sweep->rank.local_rank < 0) index = sweep->rank.rank % visible;
    snprintf(sweep->device, sizeof sweep->device, "cuda:%d", index);
    return 0;
}
/* Reads and checks the options for the number of runs of a point. Returns 0 or an exit code. */
static int sweep_rules(struct sweep *sweep) {
    const struct options *options = sweep->options;
    sweep->rule.min_runs = number_of(options, "num_runs_per_sample");
    sweep->rule.half_width = opt(options, "stop_half_width")->real / 100;
    sweep->rule.confidence = 0.95;
    sweep->rule.box_ns = (int64_t)(opt(options, "time_box_s")->real * 1e9);
    sweep->rule.max_runs = sweep->rule.half_width > 0 ? number_of(options, "max_runs") : sweep->rule.min_runs;
    sweep->max_retries = (int32_t)number_of(options, "max_retries");
    sweep->bare_every = (int32_t)number_of(options, "bare_every");
    sweep->timing_off = !strcmp(text_of(options, "timing"), "off");
    sweep->kernel_pass = is_given(options, "kernel_pass") && !sweep->timing_off;
    if (!(sweep->rule.half_width > 0) && (is_given(options, "max_runs") || is_given(options, "time_box_s")))
        return complain(EXIT_USAGE, "--max_runs and --time_box_s need a --stop_half_width above 0");
    if (is_given(options, "max_runs") && sweep->rule.max_runs < sweep->rule.min_runs)
        return complain(EXIT_USAGE, "--max_runs %lld is less than --num_runs_per_sample %lld",
                        (long long)sweep->rule.max_runs, (long long)sweep->rule.min_runs);
    if (sweep->rule.max_runs < sweep->rule.min_runs) sweep->rule.max_runs = sweep->rule.min_runs;
    return 0;
}
static int check_sweep_options(const struct options *options) {
    vp_score_metric metric;
    if (text_of(options, "metric") && vp_score_metric_find(text_of(options, "metric"), &metric) != VP_OK)
        return unknown_metric(text_of(options, "metric"), METRICS_OF_ROWS);
    if ((is_given(options, "ready") || is_given(options, "ramp_s")) && !is_given(options, "request_rate_list")
        && !is_given(options, "concurrency_list") && !is_given(options, "server"))
        return complain(EXIT_USAGE, "--ready and --ramp_s need --request_rate_list, --concurrency_list or --server");
    if (text_of(options, "annotations") && opt(options, "data")->count > 1)
        return complain(EXIT_USAGE,
                        "--annotations needs a single --data file; for several, annotations are found by their "
                        "official names");
    return 0;
}
/* Makes the plan of a sweep of servers. Several processes are rejected, because they would disturb each other's
 * times. */
static int sweep_plan_servers(struct sweep *sweep) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = launched_read(environment, NULL, &sweep->rank, &error);
    if (result != VP_OK) return complain_result(EXIT_USAGE, "environment", result, &error);
    if (sweep->rank.world_size > 1)
        return complain(EXIT_USAGE, "WORLD_SIZE is %d: servers are measured by one process, with one request at a time",
                        sweep->rank.world_size);
    if (is_given(sweep->options, "server") && opt(sweep->options, "endpoint")->count > 1)
        return complain(EXIT_USAGE, "--server starts one server: give one --endpoint");
    sweep->bare_every = 0;
    sweep->timing_off = 1;
    return plan_of_options(sweep->options, NULL, &sweep->plan);
}
/* Some models' prompts have styles; others take only the question, like chat servers. Returns 0 or EXIT_USAGE. */
static int check_prompts(const struct options *options, const struct model *model) {
    if (model->rules->has_styles && is_given(options, "answer_hint"))
        return complain(EXIT_USAGE, "--answer_hint is for servers and for models other than Molmo; for short answers "
                                    "from Molmo, use --style");
    if (!model->rules->has_styles && is_given(options, "style"))
        return complain(EXIT_USAGE, "--style: prompt styles exist only for Molmo models, not for %s; for short "
                                    "answers, use --answer_hint",
                        vp_architecture_name(model->config.architecture));
    return 0;
}
/* Fills the settings, also those of profiles. Returns 0 or an exit code. */
static int sweep_settings_read(const struct options *options, struct sweep_settings *settings) {
    *settings = (struct sweep_settings){
        .engine = engine_options_of(options), .endpoint = endpoint_settings_of(options),
        .output_dir = text_of(options, "output_dir"), .twins = (int32_t)number_of(options, "twins"),
        .no_cache = is_given(options, "no_cache"),
        .same_image = is_given(options, "same_image"), .retry_failed = is_given(options, "retry_failed"),
        .is_uniform = !strcmp(text_of(options, "arrivals"), "uniform"), .ramp_s = opt(options, "ramp_s")->real};
    if (is_given(options, "request_rate_list") || is_given(options, "concurrency_list") || is_given(options, "server"))
        settings->endpoint.max_retries = 0; /* a retry would change the load */
    return profile_settings_read(options, &settings->profile);
}
/* Checks all options, loads the model's configuration and makes the plan. Returns 0 or an exit code. */
static int sweep_plan(struct sweep *sweep) {
    const struct options *options = sweep->options;
    int code;
    if ((code = check_sweep_options(options)) != 0 || (code = sweep_settings_read(options, &sweep->settings)) != 0
        || (code = sweep_rules(sweep)) != 0)
        return code;
    if (is_given(options, "endpoint")) return sweep_plan_servers(sweep);
    if ((code = sweep_rank(sweep)) != 0) return code;
    if ((code = check_engine_options(options)) != 0 || (code = model_load(options, &sweep->model)) != 0
        || (code = check_prompts(options, &sweep->model)) != 0)
        return code;
    warn_of_template(&sweep->model);
    return plan_of_options(options, &sweep->model, &sweep->plan);
}
static int run_command(const struct options *options) {
    struct sweep sweep = {.options = options, .journal.fd = -1};
    const int is_served = is_given(options, "endpoint");
    int code = sweep_plan(&sweep);
    if (!code)
        code =
            baseline_open(&sweep.baseline, text_of(options, "baseline"), is_served ? NULL : &sweep.model, &sweep.plan);
    if (!code && is_given(options, "plan")) code = plan_cost_show(&sweep, is_given(options, "json"));
    else if (!code) {
        code = sweep_run(&sweep);
        if (!code || code == EXIT_INTERRUPTED) code = sweep_report(&sweep);
    }
    sweep_free(&sweep);
    return code;
}

const struct command command_sweep = {
    "sweep",
    "(--model DIR | --synthetic NAME | --endpoint URL...) --data FILE... --output_dir DIR",
    "measure and score a grid of knobs over a data set; resumes when run again",
    "vlmprof sweep --model checkpoint --data samples/questions.jsonl --tier_list low high --top_k_list 1 2 "
    "--output_dir results\n"
    "  vlmprof sweep --endpoint http://127.0.0.1:8000 --data samples/questions.jsonl --request_rate_list 2 4 "
    "--output_dir results",
    0,
    COMMAND_OPTIONS(SWEEP_OPTIONS),
    "family",
    run_command,
    "model synthetic data image_dir metric num_samples endpoint endpoint_model family request_rate_list "
    "concurrency_list server knob tier_list vision_tokens_list image_knob top_k_list num_active_blocks_list "
    "weights_list prune_list choices num_runs_per_sample max_new_tokens device output_dir plan json"};
