/* sweep_point.c: measures the points of a sweep and writes each one to the journal. */
#include "sweep/sweep.h"

#include "base/console.h"
#include "data/choice.h"
#include "data/dataset.h"
#include "measure/input.h"
#include "measure/noise.h"
#include "measure/provenance.h"
#include "measure/record.h"
#include "profile/profile.h"
#include "results/fields.h"
#include "sweep/journal.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"
#include "vlmprof_score.h"

#include <math.h>
#include <time.h>

enum { FAILURES_IN_A_ROW = 8 }; /* then the machine is the cause, not the points */

void sweep_message(const struct sweep *sweep, const char *what, const char *remedy) {
    char requests[60] = "";
    close_progress();
    if (knobs_are_loaded(&sweep->plan.configurations->knobs))
        snprintf(requests, sizeof requests, " and %lld requests measured now", (long long)sweep->runs_now);
    print_note("vlmprof: %s: %zu of %zu points%s are in %s; %srun the same command again to continue\n", what,
               sweep->done, sweep->point_count, requests, sweep->journal.path, remedy);
}

/* ---- lines */
int is_same_grid(const struct sweep *sweep) {
    size_t wanted = 0;
    for (int32_t i = 0; i < sweep->index.configuration_count; i++)
        wanted += (size_t)sweep->index.configurations[i].is_wanted;
    for (size_t i = 0; i < sweep->plan.configuration_count; i++)
        if (sweep->plan.configurations[i].in_index < 0
            || !sweep->index.configurations[sweep->plan.configurations[i].in_index].is_wanted)
            return 0;
    return wanted == sweep->plan.configuration_count;
}
static void put_head_configuration(vp_json_writer *writer, const struct sweep *sweep,
                                   const struct configuration *configuration) {
    struct configuration_line line = {.file_name = configuration->file_name,
                                      .set = (int64_t)(configuration->set - sweep->plan.sets)};
    vp_json_begin_object(writer);
    fields_put(writer, &CONFIGURATION, &line);
    knob_put_journal(writer, &configuration->knobs);
    vp_json_end_object(writer);
}
static void put_head_dataset(vp_json_writer *writer, const struct dataset *dataset) {
    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)dataset->hash);
    struct data_line line = {.task = dataset->task, .path = dataset->path,
        .metric = vp_score_metric_of(dataset->metric)->name, .max_new_tokens = dataset->new_tokens,
        .num_samples = (int64_t)dataset->count, .content_hash = hash};
    vp_json_begin_object(writer);
    fields_put(writer, &DATA, &line);
    vp_json_end_object(writer);
}
/* Writes the model's shape: the part that a latency model of the results needs (`fit`: num_experts), and the part that
 * distinguishes two models with the same name. */
static void put_model_shape(vp_json_writer *writer, const struct sweep *sweep) {
    const vp_model_config *config = &sweep->model.config;
    struct model_shape shape = {.num_experts = config->expert_count, .top_k = config->top_k, .d_model = config->d_model,
        .n_heads = config->head_count, .n_layers = config->block_count, .expert_dim = config->expert_dim,
        .vocab_size = config->vocab_size, .vit_width = config->vit_width, .vit_layers = config->vit_block_count};
    fields_put_object(writer, "model_shape", &MODEL_SHAPE, &shape);
}
int write_head(struct sweep *sweep) {
    vp_json_writer *writer = journal_line_begin(&sweep->journal);
    struct head_line line = {.schema = JOURNAL_SCHEMA, .plan = sweep->index.plan, .rank = sweep->rank.rank,
        .world_size = sweep->rank.world_size,
        .model = sweep->served ? sweep->plan.variants.items[0].model : sweep->model.name,
        .synthetic = sweep->model.synthetic, .timing = sweep->timing_off ? "off" : "stage",
        .ignore_eos = sweep->plan.settings.ignore_eos, .num_runs_per_sample = sweep->plan.settings.run_count,
        .num_total_blocks = sweep->model.config.block_count, .bare_every = sweep->bare_every,
        .architecture = sweep->served ? NULL : vp_architecture_name(sweep->model.config.architecture)};
    fields_put(writer, &HEAD, &line);
    sweep->backend->put_head(writer, sweep);
    put_options(writer, "options", sweep->options);
    PUT(writer, KEY_ARRAY("data"));
    for (size_t i = 0; i < sweep->plan.set_count; i++) put_head_dataset(writer, &sweep->plan.sets[i]);
    PUT(writer, END_ARRAY, KEY_ARRAY("configs"));
    for (size_t i = 0; i < sweep->plan.configuration_count; i++)
        put_head_configuration(writer, sweep, &sweep->plan.configurations[i]);
    vp_json_end_array(writer);
    return journal_line_append(&sweep->journal);
}
/* Writes the machine and options of this session. The engine's first request, the cold one, has already run. */
static int write_session(struct sweep *sweep, const struct pass_input *input, const struct pass_result *cold) {
    vp_json_writer *writer = journal_line_begin(&sweep->journal);
    int64_t at = sweep->journal.end;
    PUT(writer, KEY_OBJECT("session"));
    put_provenance(writer, sweep->options, sweep->engine->session.engine, &sweep->settings.engine);
    PUT(writer, KEY("rank", sweep->rank.rank), KEY("world_size", sweep->rank.world_size),
        KEY("launcher", sweep->rank.launcher),
        KEY("stamp_cost_ns", vp_engine_stamp_cost_ns(sweep->engine->session.engine)), KEY_OBJECT("cold"),
        KEY("T_total", metric_of(cold, METRIC_TOTAL)), KEY("TTFT", metric_of(cold, METRIC_TTFT)),
        KEY("views", layout_of(input) ? layout_of(input)->views : 0), KEY("total_sequence_length", sequence_of(input)),
        KEY("output_tokens", cold->reply.token_count), END_OBJECT, END_OBJECT);
    int code = journal_line_append(&sweep->journal);
    sweep->engine->session_at = at;
    return code;
}
int sweep_write_sample(struct sweep *sweep, size_t set, const struct sample *sample) {
    vp_json_writer *writer = journal_line_begin(&sweep->journal);
    struct sample_line line = {.sample = sample->id, .set = (int64_t)set, .prompt = sample->prompt,
        .input_text_tokens = sweep->served ? -1 : sample->tokens.count};
    fields_put(writer, &SAMPLE, &line);
    put_metadata(writer, &sweep->scratch, sample);
    return journal_line_append(&sweep->journal);
}
/* Sets the members that all lines of a point have. */
#define POINT_LINE(line, point, sample) \
    ((line).config = (point)->configuration->file_name, (line).sample_id = (sample)->id, (line).prev = (point)->last)
/* Writes a point's line, which becomes its last line. */
static int point_append(struct sweep *sweep, struct open_point *point) {
    struct text_buffer line;
    int code = journal_line_end(&sweep->journal);
    if (code) return code;
    /* a success after these failures: they are the points' own */
    if (sweep->pending.bytes) code = journal_append(&sweep->journal, sweep->pending.data, sweep->pending.bytes);
    if (code) return code;
    sweep->pending.bytes = 0;
    sweep->streak = 0;
    int64_t at = sweep->journal.end;
    line = sweep->journal.line;
    if ((code = journal_append(&sweep->journal, line.data, line.bytes)) == 0) point->last = at;
    return code;
}
static int point_write(struct sweep *sweep, struct open_point *point, const struct fields *fields, const void *line) {
    fields_put(journal_line_begin(&sweep->journal), fields, line);
    return point_append(sweep, point);
}
/* The last reading as JSON; NULL if there is none. */
static const char *telemetry_text(const struct sweep *sweep, struct text_buffer *text) {
    vp_json_writer writer;
    if (!sweep->has_telemetry) return NULL;
    vp_json_writer_init_sink(&writer, text_sink, text, 0);
    put_telemetry(&writer, &sweep->telemetry);
    return vp_json_finish(&writer) == VP_OK ? text->data : NULL;
}
int point_write_run(struct sweep *sweep, struct open_point *point, const struct sample *sample,
                    const struct pass_result *run) {
    struct text_buffer text = {NULL, 0, 0};
    const char *telemetry = telemetry_text(sweep, &text);
    struct run_line line;
    int code;
    line.pass = *run;
    line.step_count = !sweep->timing_off && run->reply.token_count > 1 ? run->reply.token_count - 1 : 0;
    POINT_LINE(line, point, sample);
    line.run = point->runs;
    line.session = sweep->engine->session_at;
    line.unix_s = (int64_t)time(NULL);
    line.stamps = sweep->timing_off ? 0 : run->reply.times.stamps + CHAIN_STAMPS;
    line.throttled = sweep->is_throttled;
    line.telemetry = telemetry;
    code = point_write(sweep, point, run->served ? &SERVED_RUN : &RUN, &line);
    free(text.data);
    return code;
}
static int write_bare(struct sweep *sweep, struct open_point *point, const struct sample *sample,
                      const struct bare_pair *pair) {
    struct bare_line line = {.pair = *pair, .session = sweep->engine->session_at};
    POINT_LINE(line, point, sample);
    return point_write(sweep, point, &BARE, &line);
}
/* The twins of a point, or the reason why there are none. */
static int write_twins(struct sweep *sweep, struct open_point *point, const struct sample *sample,
                       const struct twins *twins, const char *reason) {
    struct twins_line line = {
        .session = sweep->engine->session_at,
        .twins = {.method = "adjusted", .reason = reason[0] ? reason : NULL, .prompt_tokens = twins->prompt_tokens,
                  .image_tokens = twins->image_tokens, .pairs = twins->pairs, .count = twins->count}};
    POINT_LINE(line, point, sample);
    return point_write(sweep, point, &TWINS, &line);
}
static int write_fidelity(struct sweep *sweep, struct open_point *point, const struct sample *sample,
                          const struct fidelity *fidelity) {
    struct fidelity_line line = {.fidelity = *fidelity, .session = sweep->engine->session_at};
    POINT_LINE(line, point, sample);
    return point_write(sweep, point, &FIDELITY_LINE, &line);
}
/* Writes a stage whose kernels were timed. The rest of its device time is idle, unless it is a copy. */
static void put_kernel_stage(vp_json_writer *writer, const struct pass_result *run, int stage, double device) {
    const double kernels = (double)run->reply.times.kernel_ns[stage] / 1e6;
    struct kernel_stage line = {.device_ms = device, .kernel_ms = kernels,
        .idle_share = !(device > 0) ? (double)NAN : is_copy_stage(stage) ? 0 : 1 - kernels / device};
    PUT(writer, KEY_OBJECT(vp_stage_name((vp_stage)stage)));
    fields_put(writer, &KERNEL_STAGE, &line);
    PUT(writer, KEY_OBJECT("parts"));
    for (int part = 0; part < VP_PART_COUNT; part++)
        if (run->reply.times.part_ns[stage][part])
            PUT(writer, KEY(vp_part_name((vp_part)part), (double)run->reply.times.part_ns[stage][part] / 1e6));
    PUT(writer, END_OBJECT, END_OBJECT);
}
static int write_kernels(struct sweep *sweep, const struct pass_input *input, const struct configuration *configuration,
                         const struct sample *sample, const struct pass_result *run) {
    vp_json_writer *writer = journal_line_begin(&sweep->journal);
    struct kernels_line line = {.config = configuration->file_name, .sample_id = sample->id,
        .views = layout_of(input) ? layout_of(input)->views : 0, .total_sequence_length = sequence_of(input),
        .T_total = metric_of(run, METRIC_TOTAL)};
    PUT(writer, KEY_OBJECT("kernels"));
    fields_put(writer, &KERNELS, &line);
    PUT(writer, KEY_OBJECT("stages"));
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        double device_ms = stage_value(run, stage, DETAIL_DEVICE);
        if (isfinite(device_ms)) put_kernel_stage(writer, run, stage, device_ms);
    }
    PUT(writer, END_OBJECT, END_OBJECT);
    return journal_line_append(&sweep->journal);
}
/* Writes the sizes derived from the layout of a point's image. */
static void put_point_layout_of(vp_json_writer *writer, const struct sweep *sweep, const struct open_point *point,
                                const struct sample *sample) {
    struct point described = {.sample = sample, .cuts = point->cuts, .knobs = &point->configuration->knobs,
                              .activations = request_activations(&sweep->engine->session, &point->input),
                              .pruned = point->pruned.image_tokens ? &point->pruned : NULL,
                              .chosen = point->configuration->grid_name, .overhead_ms = point->overhead_ms};
    if (point->cuts) {
        const int32_t target = (int32_t)knob_number(described.knobs, KNOB_TOKENS);
        described.target_tokens = target ? target : point->cuts->whole.theoretical_tokens;
        described.target_crops = point->cuts->whole.crops;
        if (target && sweep->model.rules->is_tiled)
            vp_select_crops(&sweep->model.config.geometry, target, &described.target_crops);
    }
    PUT(writer, KEY_OBJECT("sizes"));
    put_point_layout(writer, &described);
    vp_json_end_object(writer);
}
int point_write_done(struct sweep *sweep, struct open_point *point, const struct sample *sample,
                     enum stop_reason stop) {
    vp_json_writer *writer = journal_line_begin(&sweep->journal);
    struct done_line line = {
        .done = point->runs, .stop = stop_name((int32_t)stop), .retries = point->retries};
    POINT_LINE(line, point, sample);
    fields_put(writer, &DONE, &line);
    sweep->backend->put_sizes(writer, sweep, point, sample);
    int code = point_append(sweep, point);
    point->is_open = 0;
    sweep->done += !code;
    return code;
}
/* Writes that a point failed. hold: the device may be the cause, so the line waits in sweep->pending until another
 * point succeeds. After FAILURES_IN_A_ROW such lines, check_streak drops them and leaves their points open. */
int point_write_failed(struct sweep *sweep, struct open_point *point, const struct sample *sample, const char *reason,
                       int hold) {
    vp_json_writer *writer = journal_line_begin(&sweep->journal);
    struct failed_line line = {.failed = reason, .attempts = point->retries + 1, .retries = point->retries};
    int code;
    POINT_LINE(line, point, sample);
    fields_put(writer, &FAILED, &line);
    sweep->backend->put_sizes(writer, sweep, point, sample);
    if ((code = journal_line_end(&sweep->journal)) != 0) return code;
    if (hold) text_add(&sweep->pending, sweep->journal.line.data, sweep->journal.line.bytes);
    /* not evidence about earlier failures */
    else code = journal_append(&sweep->journal, sweep->journal.line.data, sweep->journal.line.bytes);
    point->is_open = 0;
    if (!sweep->first_failure[0])
        snprintf(sweep->first_failure, sizeof sweep->first_failure, "; the first: sample %lld: %.200s",
                 (long long)sample->id, reason);
    sweep->done += !code;
    sweep->failed += !code;
    return code;
}
/* Counts a failure that the machine may have caused. Returns 0, or exit_code after FAILURES_IN_A_ROW of them. */
static int check_streak(struct sweep *sweep, int exit_code, const char *reason) {
    if (++sweep->streak < FAILURES_IN_A_ROW) return 0;
    /* each pending line is a point that counted as done */
    for (const char *line = sweep->pending.data; sweep->pending.bytes && line && (line = strchr(line, '\n')) != NULL;
         line++) {
        sweep->done--;
        sweep->failed--;
    }
    complain(exit_code, "%d consecutive failures, the last one: %s", FAILURES_IN_A_ROW, reason);
    sweep_message(sweep, "stopped; these points remain open", "");
    return exit_code;
}

/* ---- other load on the machine */
void sweep_block_begin(struct sweep *sweep) {
    noise_read(noise_root(), &sweep->block_reading, sweep->server_group);
    sweep->block_from = sweep->journal.end;
    sweep->block_runs = sweep->runs_now;
}
/* Between two rounds: ends the block if it is long enough for shares of the CPU, or is the last one, and begins the
 * next. Nothing is timed in between. A block without runs is not written. */
static int block_end(struct sweep *sweep, int is_last) {
    vp_noise_reading now;
    vp_noise noise;
    struct noise_line line;
    if (sweep->runs_now == sweep->block_runs) return 0;
    noise_read(noise_root(), &now, sweep->server_group);
    if (!is_last && !vp_noise_is_long_enough(&sweep->block_reading, &now)) return 0;
    if (!vp_noise_between(&sweep->block_reading, &now, &noise)) return 0;
    line.noise = noise;
    line.from = sweep->block_from;
    fields_put_object(journal_line_begin(&sweep->journal), "noise", &NOISE_LINE, &line);
    int code = journal_line_append(&sweep->journal);
    sweep->block_reading = now;
    sweep->block_from = sweep->journal.end;
    sweep->block_runs = sweep->runs_now;
    return code;
}
int sweep_block_end(struct sweep *sweep) { return block_end(sweep, 1); }

/* ---- the engine */
/* Called after the engine was opened: reports the device that --device auto chose, and rejects results that would mix
 * times of a CPU and a GPU. Returns 0 or an exit code. */
static int check_session(struct sweep *sweep) {
    const struct index_file *file = &sweep->index.files[0];
    const char *note = vp_engine_device_note(sweep->engine->session.engine);
    if (note[0] && !sweep->engine->was_open)
        complain(0, gpu_of(sweep->engine->session.engine) < 0 ? "device: cpu (no CUDA: %s)" : "device: %s", note);
    if (!file->knows_device || file->on_gpu == (gpu_of(sweep->engine->session.engine) >= 0)) return 0;
    return complain(EXIT_DEVICE, "the points in %s were measured on %s, but this is %s: use another --output_dir",
                    sweep->journal.path, file->device, vp_engine_device(sweep->engine->session.engine));
}
static int has_configuration(const struct sweep *sweep, const struct sweep_engine *engine,
                             const struct configuration *configuration) {
    return !configuration->dropped && configuration->weights_at == (size_t)(engine - sweep->engines);
}
/* The longest sequence and the most views among an engine's configurations. Returns how many there are. */
static int engine_needs(const struct sweep *sweep, const struct sweep_engine *engine, int32_t *sequence,
                        int32_t *views) {
    int left = 0;
    *sequence = 1;
    *views = 1;
    for (size_t i = 0; i < sweep->plan.run_count; i++) {
        const struct configuration *configuration = &sweep->plan.runs[i];
        if (!has_configuration(sweep, engine, configuration)) continue;
        left++;
        if (configuration->need_sequence > *sequence) *sequence = configuration->need_sequence;
        if (configuration->need_views > *views) *views = configuration->need_views;
    }
    return left;
}
static int is_as_large(const struct configuration *configuration, int32_t sequence, int32_t views) {
    return views > 1 ? configuration->need_views == views : configuration->need_sequence == sequence;
}
/* Drops the engine's configurations with the largest requests: those with that many views or, without crops, with that
 * sequence. Returns how many; 0 if none would remain. */
static int drop_largest(struct sweep *sweep, int32_t sequence, int32_t views, const char *reason) {
    int dropped = 0, left = 0;
    for (size_t i = 0; i < sweep->plan.run_count; i++)
        left += has_configuration(sweep, sweep->engine, &sweep->plan.runs[i])
                && !is_as_large(&sweep->plan.runs[i], sequence, views);
    for (size_t i = 0; left && i < sweep->plan.run_count; i++) {
        struct configuration *configuration = &sweep->plan.runs[i];
        if (!has_configuration(sweep, sweep->engine, configuration) || !is_as_large(configuration, sequence, views))
            continue;
        configuration->dropped = copy_text(reason, strlen(reason));
        complain(EXIT_WORK, "%s does not fit: %s", configuration->file_name, reason);
        dropped++;
    }
    return dropped;
}
static int has_work(const struct sweep *sweep, const struct sweep_engine *engine) {
    for (size_t i = 0; i < sweep->plan.run_count; i++)
        if (has_configuration(sweep, engine, &sweep->plan.runs[i])
            && sweep->plan.runs[i].open_count)
            return 1;
    return 0;
}
/* Adds up the memory reserved by all engines, before any is opened, because all are open at once. Returns 0, or the
 * exit code that ends the sweep if they do not fit. */
static int check_memory(const struct sweep *sweep) {
    uint64_t *bytes = zeroed(sweep->engine_count, sizeof *bytes), free_bytes = 0, sum = 0;
    struct text_buffer sets = {NULL, 0, 0}, needs = {NULL, 0, 0};
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = VP_OK;
    size_t count = 0;
    int code = 0;
    for (size_t i = 0; i < sweep->engine_count && sweep->engine_count > 1 && result == VP_OK; i++) {
        const struct sweep_engine *engine = &sweep->engines[i];
        int32_t sequence, views;
        char piece[64];
        if (!has_work(sweep, engine)) continue;
        engine_needs(sweep, engine, &sequence, &views);
        vp_engine_options counts = engine->settings;
        vp_engine *counter = NULL;
        counts.counts_only = 1;
        result = engine_try(&counts, (struct model *)&sweep->model, sequence, views, &counter, &error);
        if (result == VP_OK) {
            sum += bytes[i] = vp_engine_bytes(counter);
            free_bytes = vp_engine_free_bytes(counter);
        }
        vp_engine_close(counter);
        snprintf(piece, sizeof piece, "%s%.20s %.2f", count++ ? ", " : "", engine->weights, (double)bytes[i] / 1e9);
        text_add_string(&needs, piece);
    }
    if (result == VP_OK && count > 1 && free_bytes && sum > free_bytes) {
        plan_fitting(&sets, &sweep->plan, bytes, free_bytes);
        code = complain(EXIT_DEVICE,
                        "--weights_list: all engines stay open and need %.2f GB (%s), but %.2f GB is free; %s%s",
                        (double)sum / 1e9, needs.data, (double)free_bytes / 1e9,
                        sets.bytes ? "these fit together: " : "none of them fits alone: ",
                        sets.bytes ? sets.data : "fewer crops, a shorter prompt or fewer new tokens need less");
    }
    FREE_ALL(bytes, sets.data, needs.data);
    return code; /* if an engine cannot be opened at all, it reports the reason later */
}
/* Opens the point's engine if it is not open, for as many configurations as fit into memory. Returns 0, or the exit
 * code that ends the sweep. With 0, *result and *error are the outcome of reopening an engine that was open before. */
static int engine_reopen(struct sweep *sweep, vp_result *result, vp_error *error) {
    int32_t sequence, views;
    int code = 0;
    *result = VP_OK;
    while (!sweep->engine->session.engine && !code) {
        char reason[LINE_BYTES];
        vp_error none = {VP_OK, -1, "", ""};
        *error = none;
        if (!engine_needs(sweep, sweep->engine, &sequence, &views)) return 0;
        *result =
            engine_try(&sweep->engine->settings, &sweep->model, sequence, views, &sweep->engine->session.engine, error);
        if (*result == VP_OK) {
            sweep->engine->warm_count = 0;
            sweep->engine->session_at = -1;
            if (sweep->runs_now == sweep->block_runs) sweep_block_begin(sweep); /* loading is not a measurement */
            code = check_session(sweep);
            sweep->engine->was_open = 1;
            return code;
        }
        if (*result == VP_ERR_INTERRUPTED) return EXIT_INTERRUPTED;
        error_line(reason, sizeof reason, *result, error);
        if (*result == VP_ERR_MEMORY && drop_largest(sweep, sequence, views, reason)) continue;
        return sweep->engine->was_open ? 0 : complain_result(exit_code_of(*result), sweep->model.name, *result, error);
    }
    return code;
}
/* Does the same. Before the first point of a process it opens all engines, so that loading does not disturb a point. */
static int engine_ready(struct sweep *sweep, vp_result *result, vp_error *error) {
    struct sweep_engine *mine = sweep->engine;
    int code = 0;
    *result = VP_OK;
    if (!sweep->fits) {
        if ((code = check_memory(sweep)) != 0) return code;
        sweep->fits = 1;
        for (size_t i = 0; i < sweep->engine_count && !code && *result == VP_OK; i++) {
            sweep->engine = &sweep->engines[i];
            if (has_work(sweep, sweep->engine)) code = engine_reopen(sweep, result, error);
        }
        sweep->engine = mine;
    }
    return code || *result != VP_OK ? code : engine_reopen(sweep, result, error);
}
/* Runs a short, unmeasured request once per shape (views, sequence in steps of 256) and per choice of knobs. The first
 * one of a session is its cold request. Returns 0, with *result, or the exit code that ends the sweep. */
static int warm_up(struct sweep *sweep, const struct configuration *configuration, const struct pass_input *input,
                   vp_result *result, vp_error *error) {
    const struct warm_pass now = {{layout_of(input) ? layout_of(input)->views : 0, sequence_of(input) / 256},
                                  &configuration->knobs};
    struct sweep_engine *engine = sweep->engine;
    struct pass_input once = *input;
    int shape_is_warm = 0, knobs_are_warm = 0; /* a GPU records one graph of a decode step per choice of knobs */
    for (size_t i = 0; i < engine->warm_count; i++) {
        const struct warm_pass *before = &engine->warm[i];
        shape_is_warm |= before->shape.views == now.shape.views && before->shape.sequence == now.shape.sequence;
        knobs_are_warm |= knobs_of_engine_are_same(before->knobs, now.knobs);
    }
    if (shape_is_warm && knobs_are_warm) return 0;
    if (once.engine.max_new_tokens > 2) once.engine.max_new_tokens = 2;
    once.engine.ignore_eos = 1;
    once.engine.dump = NULL;
    once.engine.forced_tokens = NULL;
    once.engine.timing = VP_TIMING_STAGE; /* the cold request is recorded with its TTFT */
    if ((*result = request_run(&engine->session, &once, sweep->run, error)) != VP_OK) return 0;
    *ADDED(engine->warm, engine->warm_count) = now;
    return engine->session_at < 0 ? write_session(sweep, input, sweep->run) : 0;
}
/* Reads the device's clocks and whether they were throttled since the last reading. */
static void read_telemetry(struct sweep *sweep) {
    vp_telemetry before = sweep->telemetry, now;
    int64_t start = vp_clock_ns();
    /* at most every 50 ms, because reading takes time and clocks change slowly */
    if (sweep->telemetry_ns && start - sweep->telemetry_ns < INT64_C(50000000)) return;
    sweep->telemetry_ns = start;
    if (vp_device_telemetry(gpu_of(sweep->engine->session.engine), &now, NULL) != VP_OK) {
        sweep->has_telemetry = sweep->is_throttled = 0;
        return;
    }
    sweep->is_throttled = sweep->has_telemetry && !isnan(now.throttle_count - before.throttle_count)
                              ? now.throttle_count > before.throttle_count
                              : now.has_throttle_reasons && (now.throttle_reasons & VP_THROTTLE_SLOWED) != 0;
    sweep->telemetry = now;
    sweep->has_telemetry = 1;
}
/* Closes all engines, the failed one last. Engines of one GPU share its context: if one fails, all fail, and the GPU
 * can only be reset when none is open. */
static void end_engines(struct sweep *sweep) {
    for (size_t i = 0; i < sweep->engine_count; i++)
        if (&sweep->engines[i] != sweep->engine) session_end_engine(&sweep->engines[i].session);
    session_end_engine(&sweep->engine->session);
}
/* Runs one request into sweep->run, and again after device errors. `reason` becomes empty, or the reason of the
 * failure; *is_device is 1 if the device failed. Returns 0, or the exit code that ends the sweep. */
static int try_run(struct sweep *sweep, struct open_point *point, const struct pass_input *input, char *reason,
                   size_t capacity, int *is_device) {
    *is_device = 0;
    sweep->engine = &sweep->engines[point->configuration->weights_at];
    for (int32_t attempt = 0;; attempt++) {
        vp_error error = {VP_OK, -1, "", ""};
        vp_result result = VP_OK;
        int code = engine_ready(sweep, &result, &error);
        if (code) return code;
        if (point->configuration->dropped) {
            snprintf(reason, capacity, "%s", point->configuration->dropped);
            return 0;
        }
        if (result == VP_OK && (code = warm_up(sweep, point->configuration, input, &result, &error)) != 0) return code;
        if (result == VP_OK && !sweep->telemetry_ns) read_telemetry(sweep); /* counts before the first run */
        if (result == VP_OK) result = request_run(&sweep->engine->session, input, sweep->run, &error);
        reason[0] = 0;
        if (result == VP_OK) return 0;
        if (result == VP_ERR_INTERRUPTED) return EXIT_INTERRUPTED;
        error_line(reason, capacity, result, &error);
        if (result != VP_ERR_DEVICE && result != VP_ERR_MEMORY) return 0;
        /* the next attempt opens a new engine, which is a new session */
        if (sweep->engine->session.engine && vp_engine_broken(sweep->engine->session.engine)) end_engines(sweep);
        if (attempt < sweep->max_retries) { point->retries++; continue; }
        if (result == VP_ERR_MEMORY) {
            point->configuration->dropped = copy_text(reason, strlen(reason));
            complain(EXIT_WORK, "%s does not fit: %s", point->configuration->file_name, reason);
        } else *is_device = 1;
        return 0;
    }
}

/* ---- a sample */
int point_resume(struct sweep *sweep, struct open_point *point, const struct index_entry *entry) {
    const vp_json *json = &sweep->index.scratch.json;
    struct point_line line = {-1, POINT_OPEN, 0};
    int code;
    if (entry && point->configuration->in_index >= 0)
        line = index_point(entry, &sweep->index.configurations[point->configuration->in_index]);
    point->is_open = line.state == POINT_OPEN || (line.state == POINT_FAILED && sweep->settings.retry_failed);
    point->lacks_kernels = sweep->kernel_pass && line.state == POINT_DONE;
    point->runs = point->retries = 0;
    point->has_bare = point->has_twins = point->has_fidelity = 0;
    point->twins_at = -1;
    point->spent_ns = 0;
    point->last = line.state == POINT_OPEN ? line.at : -1;
    for (int64_t at = point->last; at >= 0;) {
        if ((code = index_read_line(&sweep->index, 0, at)) != 0) return code;
        int64_t run = node_int(json, 0, "run", -1);
        int64_t prev = node_int(json, 0, "prev", -1);
        point->has_bare |= vp_json_get(json, 0, "bare") != VP_JSON_NONE;
        const uint32_t twins = vp_json_get(json, 0, "twins");
        if (twins != VP_JSON_NONE && point->twins_at < 0) {
            const int64_t pairs = json->nodes[vp_json_get(json, twins, "pairs")].count;
            point->twins_at = at;
            point->has_twins = has_value(json, twins, "reason") || pairs >= sweep->settings.twins;
        }
        point->has_fidelity |= vp_json_get(json, 0, "fidelity") != VP_JSON_NONE;
        if (run >= 0 && run < sweep->rule.max_runs) {
            if (run >= point->runs) point->runs = (int32_t)run + 1;
            point->totals[run] = (double)node_int(json, 0, "total_ns", 0);
            point->spent_ns += node_int(json, 0, "total_ns", 0);
        }
        at = prev < at ? prev : -1;
    }
    return 0;
}
/* Runs the pair that shows the cost of stage times: the point once more without and with them, in random order. */
static int measure_bare(struct sweep *sweep, struct open_point *point, const struct sample *sample) {
    uint64_t toss = hash_text(hash_number(hash_number(HASH_START, sweep->plan.settings.data.seed), sample->id),
                              point->configuration->file_name);
    struct bare_pair pair = {0, 0, (int)(toss >> 33 & 1)};
    int is_device, code;
    char reason[LINE_BYTES] = "";
    point->has_bare = 1;
    for (int i = 0; i < 2; i++) {
        struct pass_input input = point->input;
        int is_bare = (i == 0) == pair.bare_first;
        input.engine.timing = is_bare ? VP_TIMING_OFF : VP_TIMING_STAGE;
        if ((code = try_run(sweep, point, &input, reason, sizeof reason, &is_device)) != 0) return code;
        if (reason[0]) return 0; /* the point has its runs; a missing pair does not matter */
        *(is_bare ? &pair.bare_ns : &pair.staged_ns) = sweep->run->total_ns;
    }
    return write_bare(sweep, point, sample, &pair);
}
/* Returns 1 if the kernels of a request of this shape were timed before. sequence: in steps of 256. */
static int has_timed_shape(const struct configuration *configuration, int32_t views, int32_t sequence) {
    for (size_t i = 0; i < configuration->shape_count; i++)
        if (configuration->shapes[i].views == views && configuration->shapes[i].sequence == sequence) return 1;
    return 0;
}
/* Returns 1 if a measured point lacks the kernels of its shape. Nothing can be timed without the image. */
static int lacks_kernels(const struct sweep *sweep, const struct open_point *point, const struct entry *entry) {
    char reason[LINE_BYTES];
    struct cuts storage = {0};
    const struct cuts *cuts;
    int lacks;
    if (!point->lacks_kernels) return 0;
    cuts = configuration_cuts(&sweep->model, point->configuration, entry, &storage, reason, sizeof reason);
    lacks = !reason[0]
            && !has_timed_shape(point->configuration, cuts ? cuts->whole.views : 0, entry_sequence(entry, cuts) / 256);
    cuts_free(&storage);
    return lacks;
}
/* With --kernel_pass, once for each shape and configuration: a run in which every kernel is timed separately. */
static int measure_kernels(struct sweep *sweep, struct open_point *point, const struct sample *sample) {
    struct pass_input input = point->input;
    const struct shape shape = {.views = input.cuts ? input.cuts->whole.views : 0,
                                .sequence = sequence_of(&input) / 256};
    struct configuration *configuration = point->configuration;
    char reason[LINE_BYTES] = "";
    int is_device, code;
    if (!sweep->kernel_pass || has_timed_shape(configuration, shape.views, shape.sequence)) return 0;
    *ADDED(configuration->shapes, configuration->shape_count) = shape;
    input.engine.timing = VP_TIMING_KERNEL;
    if ((code = try_run(sweep, point, &input, reason, sizeof reason, &is_device)) != 0) return code;
    if (reason[0] || !sweep->run->reply.times.has_kernels) return 0;
    return write_kernels(sweep, &input, point->configuration, sample, sweep->run);
}
/* Measures pairs of the image and a text of equal length. After Ctrl-C or a crash of the server, the complete pairs are
 * in the journal, and the point stays open. */
static int measure_twins(struct sweep *sweep, struct open_point *point, const struct sample *sample) {
    const vp_json *json = &sweep->index.scratch.json;
    char reason[LINE_BYTES];
    struct twins_object known = {0};
    struct twins twins;
    int written = 0, code = point->twins_at < 0 ? 0 : index_read_line(&sweep->index, 0, point->twins_at);
    if (code) return code;
    if (point->twins_at >= 0) fields_read(json, vp_json_get(json, 0, "twins"), &TWINS_OBJECT, &known);
    code = served_twins(sweep, point, sample, &known, &twins, reason, sizeof reason);
    point->has_twins = !code;
    if (reason[0]) complain(0, "--twins, sample %lld: %s", (long long)sample->id, reason);
    if (!code || twins.count > known.count) written = write_twins(sweep, point, sample, &twins, code ? "" : reason);
    if (code == EXIT_DEVICE) {
        complain(0, "%d of %d pairs of sample %lld are kept", twins.count, sweep->settings.twins,
                 (long long)sample->id);
        sweep_message(sweep, "stopped", RESTART_REMEDY);
    }
    fields_free(&TWINS_OBJECT, &known);
    twins_free(&twins);
    return written ? written : code;
}
/* Gets the baseline's answer for the point's data set, once per sample. */
static int ask_baseline(struct sweep *sweep, const struct open_point *point, const struct sample *sample) {
    struct baseline *baseline = &sweep->baseline;
    const size_t set = (size_t)(point->configuration->set - sweep->plan.sets);
    struct open_point *first = sweep->open;
    char reason[LINE_BYTES] = "";
    struct pass_input input;
    vp_dump dump;
    int is_device, code;
    if (baseline->is_made) return 0;
    if (!baseline->of[set].configuration) {
        baseline_take_old(baseline, set, sample->id);
        return 0;
    }
    while (first->configuration != baseline->of[set].configuration) first++;
    if (sweep->served) return served_ask_baseline(sweep, first, sample);
    input = first->input;
    baseline_answer(baseline, &input, &dump);
    code = try_run(sweep, first, &input, reason, sizeof reason, &is_device);
    if (code) return code;
    if (reason[0]) baseline_lacks(baseline, reason); else baseline_keep(baseline, sweep->run);
    return 0;
}
/* Follows the baseline's answer. If its tokens are not known, the point's own answer is compared as text. */
static int follow_baseline(struct sweep *sweep, struct open_point *point, struct fidelity *fidelity, char *reason,
                           size_t capacity) {
    struct baseline *baseline = &sweep->baseline;
    const struct likely_steps none = {NULL, 0};
    struct pass_input input = point->input;
    struct fidelity_pass pass;
    vp_dump dump;
    int is_device, code;
    if (baseline->token_count) baseline_follow(baseline, &input, &dump, &pass, fidelity);
    code = try_run(sweep, point, &input, reason, capacity, &is_device);
    if (code || reason[0]) return code;
    if (!baseline->token_count) {
        const struct answer_of first = {baseline->said.text, baseline->said.bytes, &none},
                               own = {sweep->run->answer, sweep->run->answer_bytes, &none};
        fidelity_of_answers(fidelity, &first, &own);
        snprintf(reason, capacity, "only the text of the baseline's answer is usable: its tokens are another model's");
    } else if (!baseline->logit_rows)
        snprintf(reason, capacity, "the baseline's answer is known, but not its distributions: no KL divergence");
    return 0;
}
static int measure_fidelity(struct sweep *sweep, struct open_point *point, const struct sample *sample) {
    const size_t set = (size_t)(point->configuration->set - sweep->plan.sets);
    char reason[LINE_BYTES] = "";
    struct fidelity fidelity;
    int code = ask_baseline(sweep, point, sample);
    if (code) return code;
    fidelity_begin(&fidelity, baseline_name(&sweep->baseline, set), sweep->baseline.reason);
    if (!fidelity.reason)
        code = sweep->served ? served_follow_baseline(sweep, point, sample, &fidelity, reason, sizeof reason)
                             : follow_baseline(sweep, point, &fidelity, reason, sizeof reason);
    if (reason[0]) fidelity.reason = copy_text(reason, strlen(reason));
    point->has_fidelity = 1;
    if (!code) code = write_fidelity(sweep, point, sample, &fidelity);
    fields_free(&FIDELITY_OBJECT, &fidelity);
    return code;
}
/* After the last run of a point: the runs that accompany its statistics, then the line that closes it. */
static int close_point(struct sweep *sweep, struct open_point *point, const struct sample *sample,
                       enum stop_reason stop) {
    int code = point->bare_is_due && !point->has_bare ? measure_bare(sweep, point, sample) : 0;
    if (!code && sweep->served && !point->has_twins && served_wants_twins(sweep, point))
        code = measure_twins(sweep, point, sample);
    if (!code) code = measure_kernels(sweep, point, sample);
    if (!code && sweep->settings.profile.points != PROFILE_NONE) {
        const struct profile_place profiled = {(size_t)(point->configuration - sweep->plan.runs),
                                               point->configuration->file_name, sample->id, point->is_first};
        code = profile_point(&sweep->settings.profile, &sweep->engine->session, &point->input, sweep->run, &profiled);
    }
    if (!code && sweep->baseline.of && !point->has_fidelity) code = measure_fidelity(sweep, point, sample);
    return code ? code : point_write_done(sweep, point, sample, stop);
}
static void sweep_progress(const struct sweep *sweep, const struct configuration *configuration,
                           const struct sample *sample, int32_t run) {
    double seconds = (double)(vp_clock_ns() - sweep->start_ns) / 1e9;
    double rate = (double)(sweep->done - sweep->done_before) / (seconds > 1e-9 ? seconds : 1e-9);
    int64_t left = rate > 0 ? (int64_t)((double)(sweep->point_count - sweep->done) / rate) : 0;
    char eta[40] = "?";
    if (rate > 0)
        snprintf(eta, sizeof eta, "%lld:%02lld:%02lld", (long long)(left / 3600), (long long)(left / 60 % 60),
                 (long long)(left % 60));
    show_progress("%zu of %zu points, %.2f points/s, ETA %s, sample %lld, run %d, %s", sweep->done, sweep->point_count,
                  rate, eta, (long long)sample->id, run, configuration->file_name);
}
/* Why the runs of a point end; STOP_NOT if they continue. */
static enum stop_reason stop_of(const struct sweep *sweep, const struct open_point *point) {
    enum stop_reason stop = STOP_NOT;
    if (point->runs < sweep->rule.min_runs) return STOP_NOT;
    return decide_stop(&sweep->rule, point->totals, (size_t)point->runs, point->spent_ns, point->scratch, &stop)
                   == VP_OK
               ? stop
               : STOP_NOT;
}
/* Measures the next run of a point, and closes the point after its last one. */
static int measure_run(struct sweep *sweep, struct open_point *point, const struct sample *sample) {
    char reason[LINE_BYTES] = "";
    enum stop_reason stop = stop_of(sweep, point);
    int is_device, code;
    if (stop == STOP_NOT) {
        code = sweep->backend->run(sweep, point, sample, reason, sizeof reason, &is_device);
        if (code) return code;
        if (reason[0]) {
            if ((code = point_write_failed(sweep, point, sample, reason, is_device)) != 0) return code;
            return is_device ? check_streak(sweep, EXIT_DEVICE, reason) : 0;
        }
        if ((code = point_write_run(sweep, point, sample, sweep->run)) != 0) return code;
        point->totals[point->runs++] = (double)sweep->run->total_ns;
        point->spent_ns += sweep->run->total_ns;
        sweep->runs_now++;
        sweep_progress(sweep, point->configuration, sample, point->runs);
        stop = stop_of(sweep, point);
        if (stop == STOP_NOT || interrupted) return 0;
    }
    return close_point(sweep, point, sample, stop);
}
/* Makes the sequence of a sample whose tokens depend on the image's cuts. `reason` is set if that is impossible.
 * Returns 0 or an exit code. */
static int point_tokenize(const struct sweep *sweep, struct open_point *point, const struct sample *sample,
                          char *reason, size_t capacity) {
    int code;
    struct sample whole = {.prompt = sample->prompt};
    code = tokenize_sample(&sweep->model, point->cuts, &whole);
    free(point->ids);
    point->input.tokens.ids = point->ids = whole.tokens.ids;
    if (!code && whole.tokens.count != sample->tokens.count)
        snprintf(reason, capacity, "the text has %d tokens around this image, but %d were planned", whole.tokens.count,
                 sample->tokens.count);
    return code;
}
/* Sets the effect of pruning on the point; `reason` is set if it cannot be pruned. */
static void plan_pruning(const struct sweep *sweep, struct open_point *point, char *reason, size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    memset(&point->pruned, 0, sizeof point->pruned);
    if (point->input.prune.how.method == VP_PRUNE_NONE) return;
    result = request_pruned(&sweep->engine->session, &point->input, weights_of(sweep->engine->weights), &point->pruned,
                            &error);
    if (result != VP_OK) error_line(reason, capacity, result, &error);
}
/* Cuts the images and makes the sequence; the first point that needs the images decodes them. */
static int engine_point_begin(struct sweep *sweep, struct open_point *point, const struct sample *sample,
                              const struct entry *entry, char *reason, size_t capacity, int *has_vanished) {
    char image_reason[LINE_BYTES] = "";
    int code = 0;
    point->cuts = configuration_cuts(&sweep->model, point->configuration, entry, &point->own_cuts, reason, capacity);
    if (sample->reason) snprintf(reason, capacity, "%s", sample->reason);
    if (point->cuts && sample_images(sample, &sweep->images, image_reason, sizeof image_reason) == EXIT_DEVICE)
        return complain(EXIT_DEVICE, "%s", image_reason);
    configuration_input(&sweep->plan, point->configuration, sample, point->cuts, sweep->images, &point->input);
    if (!sample->tokens.ids && !reason[0]) code = point_tokenize(sweep, point, sample, reason, capacity);
    if (sweep->timing_off) point->input.engine.timing = VP_TIMING_OFF;
    *has_vanished = image_reason[0] && has_vanished_image(sample);
    if (!reason[0]) snprintf(reason, capacity, "%s", image_reason);
    if (!reason[0] && positions_of(&point->input) > sweep->model.config.max_positions)
        snprintf(reason, capacity, "the sequence with its new tokens needs %lld positions, but the model has %d",
                 (long long)positions_of(&point->input), sweep->model.config.max_positions);
    if (!reason[0]) plan_pruning(sweep, point, reason, capacity);
    return code;
}
static int engine_point_run(struct sweep *sweep, struct open_point *point, const struct sample *sample, char *reason,
                            size_t capacity, int *is_device) {
    (void)sample;
    const int code = try_run(sweep, point, &point->input, reason, capacity, is_device);
    if (!code && !reason[0]) read_telemetry(sweep);
    return code;
}
const struct sweep_backend ENGINE_BACKEND = {put_model_shape, put_point_layout_of, engine_point_begin, NULL,
                                             engine_point_run};

/* Makes the requests of a sample, and writes open points that cannot run as failed. */
static int sample_begin(struct sweep *sweep, size_t count, const struct sample *sample, const struct entry *entry) {
    char reason[LINE_BYTES] = "", vanished_reason[LINE_BYTES];
    int vanished = 0, has_vanished = 0, code = 0;
    for (size_t i = 0; i < count && !code && !interrupted; i++) {
        struct open_point *point = &sweep->open[i];
        if (!point->is_open && !point->lacks_kernels && !point->is_wanted) continue;
        code = sweep->backend->begin(sweep, point, sample, entry, reason, sizeof reason, &has_vanished);
        if (code || !reason[0]) continue;
        if (point->is_wanted) baseline_lacks(&sweep->baseline, reason);
        if (point->is_open && has_vanished) {
            vanished = 1;
            snprintf(vanished_reason, sizeof vanished_reason, "%s", reason);
        }
        if (point->is_open) code = point_write_failed(sweep, point, sample, reason, vanished);
        point->lacks_kernels = 0;
    }
    return code || !vanished ? code : check_streak(sweep, EXIT_INPUT, vanished_reason);
}
void sweep_draw_order(const struct sweep *sweep, size_t *order, size_t count, int64_t sample, int64_t round) {
    uint64_t seed = hash_number(hash_number(hash_number(HASH_START, sweep->plan.settings.data.seed), sample), round);
    for (size_t i = 0; i < count; i++) {
        seed = hash_number(seed, (int64_t)i);
        const size_t at = sweep->served ? (size_t)((seed >> 16) % (i + 1)) : i;
        order[i] = order[at];
        order[at] = i;
    }
}
/* Measures all configurations of one sample, in rounds of one run each, so that drift affects all equally.
 * The image is decoded once. */
static int sweep_sample(struct sweep *sweep, struct configuration *configurations, size_t configuration_count,
                        size_t index) {
    const struct dataset *dataset = configurations->set;
    size_t set = (size_t)(dataset - sweep->plan.sets), open_count = 0;
    const struct index_entry *entry =
        sweep->index.set_count ? index_find(&sweep->index.sets[set], 0, dataset->samples[index].id) : NULL;
    struct sample sample;
    int code = 0;
    for (size_t i = 0; i < configuration_count && !code; i++) {
        sweep->open[i].configuration = plan_run_of(&sweep->plan, &configurations[i], index);
        if (sweep->plan.choices && !i) sweep->open[i].overhead_ms = sweep->plan.choices[index].overhead_ms;
        code = point_resume(sweep, &sweep->open[i], entry);
        sweep->open[i].bare_is_due =
            sweep->bare_every && !sweep->timing_off && (index + i) % (size_t)sweep->bare_every == 0;
        sweep->open[i].is_first = !index;
        sweep->open[i].lacks_kernels = !code && lacks_kernels(sweep, &sweep->open[i], &dataset->samples[index]);
        open_count += sweep->open[i].is_open || sweep->open[i].lacks_kernels;
    }
    if (code || !open_count) return code;
    if (sweep->baseline.of) baseline_forget(&sweep->baseline);
    for (size_t i = 0; i < configuration_count; i++)
        sweep->open[i].is_wanted = sweep->baseline.of && sweep->baseline.of[set].configuration == &configurations[i];
    if ((code = dataset_sample(dataset, sweep->served ? NULL : &sweep->model, index, &sample)) != 0) return code;
    if (!entry) code = sweep_write_sample(sweep, set, &sample);
    if (!code) code = sample_begin(sweep, configuration_count, &sample, &dataset->samples[index]);
    for (size_t i = 0; i < configuration_count && !code && !interrupted; i++)
        if (sweep->open[i].lacks_kernels) code = measure_kernels(sweep, &sweep->open[i], &sample);
    size_t *order = zeroed(configuration_count, sizeof *order);
    for (int64_t round = 0; !code && !interrupted && open_count; round++) {
        open_count = 0;
        sweep_draw_order(sweep, order, configuration_count, sample.id, round);
        for (size_t i = 0; i < configuration_count && !code && !interrupted; i++) {
            struct open_point *point = &sweep->open[order[i]];
            if (point->is_open && point->runs <= round) code = measure_run(sweep, point, &sample);
            open_count += (size_t)point->is_open;
        }
        if (!code) code = block_end(sweep, 0);
    }
    free(order);
    if (sweep->backend->end) sweep->backend->end(sweep);
    images_free(sweep->images, sample.images.count);
    sweep->images = NULL;
    for (size_t i = 0; i < configuration_count; i++) cuts_free(&sweep->open[i].own_cuts);
    sample_free(&sample);
    return code;
}
int sweep_loop(struct sweep *sweep) {
    const int is_loaded = knobs_are_loaded(&sweep->plan.configurations[0].knobs);
    int code = 0;
    sweep->start_ns = vp_clock_ns();
    sweep_block_begin(sweep);
    if (is_loaded) code = served_load_loop(sweep);
    /* a sample of each data set in turn, in both directions alternately, so that drift affects all sets equally */
    for (size_t round = 0, sets = sweep->plan.set_count, more = !is_loaded; more && !code && !interrupted; round++) {
        more = 0;
        for (size_t i = 0; i < sets && !code && !interrupted; i++) {
            const size_t set = round % 2 ? sets - 1 - i : i, each = sweep->plan.configuration_count / sets;
            size_t at = 0, stride = 1, count = 0;
            shard_of(sweep->plan.sets[set].count, sweep->rank.rank, sweep->rank.world_size, &at, &stride, &count);
            if (round >= count) continue;
            more = 1;
            code = sweep_sample(sweep, &sweep->plan.configurations[set * each], each, at + round * stride);
        }
    }
    if (!code) code = block_end(sweep, 1);
    if (!code && !interrupted && sweep->pending.bytes)
        code = journal_append(&sweep->journal, sweep->pending.data, sweep->pending.bytes);
    if (!code && !interrupted
        && !(sweep->index.files[0].is_finished && is_same_grid(sweep)
             && sweep->journal.end == sweep->index.files[0].end)) {
        put_bool(journal_line_begin(&sweep->journal), "finished", 1);
        code = journal_line_append(&sweep->journal);
    }
    if (code != EXIT_OUTPUT) { /* lines written before an error are valid */
        int synced = journal_sync(&sweep->journal);
        if (!code) code = synced;
    }
    close_progress();
    return code;
}
