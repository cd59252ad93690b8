/* profile.c: run --profile and sweep --use_profiler: schedules, and tables of operations, memory and idle time.
 * Measuring in this mode takes time itself, so its times never enter the statistics of stages. */
#include "profile/profile.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "measure/noise.h"
#include "measure/provenance.h"
#include "measure/record.h"
#include "model/image.h"
#include "model/model.h"
#include "vlmprof_engine.h"
#include "vlmprof_file.h"
#include "vlmprof_image.h"
#include "vlmprof_ranges.h"
#include "vlmprof_stages.h"

#include <sys/resource.h>

/* ---- run --profile */
/* Checks the schedule. *steps becomes the number of requests. Returns 0 or an exit code. */
static int plan_steps(const struct profile_settings *settings, int64_t *steps) {
    const vp_schedule *schedule = &settings->schedule;
    vp_error error = {VP_OK, -1, "", ""};
    int no_warmup = 0;
    vp_result result;
    if ((result = vp_schedule_check(schedule, &no_warmup, &error)) != VP_OK)
        return complain_result(EXIT_USAGE, "schedule", result, &error);
    int64_t cycle = schedule->wait + schedule->warmup + schedule->active;
    if (settings->steps) *steps = settings->steps;
    else if (!schedule->repeat)
        return complain(EXIT_USAGE, "--repeat 0 continues until the runs end: set their number with --num_runs");
    else
        *steps = schedule->skip_first
                 + (schedule->repeat - 1) * (schedule->every_n_steps ? schedule->every_n_steps : cycle) + cycle;
    if (*steps > 1000000)
        return complain(EXIT_USAGE, "this schedule has %lld requests; the limit is 1000000", (long long)*steps);
    if (no_warmup && !settings->cold)
        complain(
            0,
            "--warmup 0: the first recorded request includes the start-up cost of this mode; --warmup 1 keeps it out "
            "of the table");
    return 0;
}
/* ---- a step: reads the image and the text of a request, then runs the request */
/* Decodes an image again and replaces the request's copy. */
static int reload_image(struct profiler *profiler, size_t index) {
    struct request *request = profiler->request;
    const char *path = request->sample.images.items[index];
    const struct image_px *size = &request->sample.sizes[index];
    vp_image *image = &request->images[index];
    char reason[LINE_BYTES];
    vp_range_payload payload = {0};
    int code;
    vp_image_free(image);
    image->rgb = NULL;
    VP_RANGE(&profiler->ranges, "load image");
    if ((code = load_image(path, image, reason, sizeof reason)) != 0) complain(code, "%s", reason);
    else if (image->width_px != size->width_px || image->height_px != size->height_px)
        code = complain(EXIT_INPUT, "%s: the image has changed", path);
    payload.memory_bytes = payload.bytes = (int64_t)size->width_px * size->height_px * 3;
    vp_range_set(&profiler->ranges, &payload);
    vp_range_end(&profiler->ranges);
    return code;
}
static int tokenize_again(struct profiler *profiler) {
    VP_RANGE(&profiler->ranges, "tokenize");
    free(profiler->request->sample.tokens.ids);
    profiler->request->sample.tokens.ids = NULL;
    int code = tokenize_input(profiler->request);
    vp_range_end(&profiler->ranges);
    return code;
}
/* One step of `run`, including decoding the images and tokenizing the prompt. */
static int profile_step(struct profiler *profiler, int64_t step, int record) {
    int code = 0;
    profiler_step_begin(profiler);
    for (size_t i = 0; i < profiler->request->sample.images.count && !code; i++) code = reload_image(profiler, i);
    if (!code) code = tokenize_again(profiler);
    return code ? code : profiler_step_run(profiler, &profiler->request->input, profiler->timed.runs, step, record);
}

/* Runs the requests according to the schedule. A cycle cut short by the last request or by Ctrl-C is also saved. */
static int profile_loop(struct profiler *profiler, const vp_schedule *schedule, int64_t steps) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_schedule_step now;
    int64_t in_cycle = 0;
    int code = 0;
    for (int64_t i = 0; i < steps && !code && !interrupted; i++) {
        vp_result result = vp_schedule_at(schedule, i, &now);
        int record = result == VP_OK && (now.state == VP_SCHEDULE_RECORD || now.state == VP_SCHEDULE_RECORD_AND_SAVE);
        if (result != VP_OK) return complain(EXIT_USAGE, "schedule: %s", vp_result_text(result));
        show_progress("request %lld of %lld: %s", (long long)i + 1, (long long)steps,
                      vp_schedule_state_name(now.state));
        if (record && !in_cycle++) code = profiler_trace_begin(profiler, NULL);
        if (now.state == VP_SCHEDULE_NONE && !code) {
            result = request_run(profiler->session, &profiler->request->input, profiler->timed.runs, &error);
            if (result != VP_OK) code = complain_result(exit_code_of(result), NULL, result, &error);
        } else if (!code) code = profile_step(profiler, i, record);
        if (now.ends_cycle) {
            in_cycle = 0;
            if (!code) code = profiler_trace_end(profiler);
        }
    }
    if (in_cycle && !code) {
        text_list_add(&profiler->notes,
                      "the last cycle was cut short after %lld of %lld active requests; its records are saved",
                      (long long)in_cycle, (long long)schedule->active);
        code = profiler_trace_end(profiler);
    }
    return code;
}

/* ---- the records, as text and as JSON */
static vp_ops_print_options print_options_of(const struct profile_settings *settings) {
    vp_ops_print_options how = vp_ops_print_options_default();
    how.row_limit = settings->row_limit;
    how.with_flops = how.with_rates = 1;
    how.with_memory = settings->profile_memory;
    return how;
}
/* A line of the table of stages; times are sums over `count` steps. */
static void write_stage(struct text_buffer *out, const char *name, double stage_ns, double op_ns, double count) {
    text_add_format(out, "%-12s %14.4f %14.4f %14.4f %8.2f\n", name, stage_ns / count / 1e6, op_ns / count / 1e6,
                    (stage_ns - op_ns) / count / 1e6, 100 * (stage_ns - op_ns) / stage_ns);
}
/* Writes each stage, the part that its operations take, and the sums. */
static void write_stages(struct text_buffer *out, const struct profiler *profiler) {
    double stages_ns = 0, ops_ns = 0, count = (double)profiler->steps;
    text_add_format(out, "\n%-12s %14s %14s %14s %8s   mean of %lld request%s\n", "stage", "device ms", "operations ms",
                    "idle ms", "idle %", (long long)profiler->steps, plural_s((int64_t)profiler->steps));
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        if (!(profiler->stage_ns[i] > 0)) continue;
        write_stage(out, vp_stage_name((vp_stage)i), profiler->stage_ns[i], profiler->op_ns[i], count);
        stages_ns += profiler->stage_ns[i];
        ops_ns += profiler->op_ns[i];
    }
    if (stages_ns > 0) write_stage(out, "sum", stages_ns, ops_ns, count);
    text_add_format(out, "%-12s %14.4f   whole requests, image file to text, including time stamps\n", "step",
                    profiler->total_ns / count / 1e6);
}
static int64_t peak_resident_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? -1 : (int64_t)usage.ru_maxrss * 1024;
}
/* Writes the engine's memory, and the peak of the process. */
static void write_memory(struct text_buffer *out, const struct profiler *profiler) {
    vp_memory_block block;
    text_add_string(out, "\nmemory                          bytes   where\n");
    for (int32_t i = 0; vp_engine_memory(profiler->session->engine, i, &block); i++)
        text_add_format(out, "%-20s %16llu   %s\n", block.name, (unsigned long long)block.bytes,
                        profiler->on_gpu && block.on_device ? "device" : "host");
    text_add_format(out, "%-20s %16lld   host: peak resident memory of this process\n", "peak",
                    (long long)peak_resident_bytes());
}
/* Writes the ceilings, and notes about calls missing from the table. */
static void write_notes(struct text_buffer *out, const struct profiler *profiler) {
    text_add_format(out, "ceilings measured on this device: reads %.4g GB/s, matrix products %.4g TFLOP/s\n",
                    profiler->ops.ceilings.bytes_per_s / 1e9, profiler->ops.ceilings.flops_per_s / 1e12);
    if (profiler_ceilings_rose(profiler))
        text_add_format(out, "  the larger of two measurements; before the requests: reads %.4g GB/s, matrix products "
                             "%.4g TFLOP/s\n",
                        profiler->first_ceilings.bytes_per_s / 1e9, profiler->first_ceilings.flops_per_s / 1e12);
    if (vp_noise_reasons(&profiler->timed.noise) & (VP_NOISE_IS_BUSY | VP_NOISE_IS_STOLEN))
        text_add_string(out, "  measured on a busy machine: both may be too low, and shares of them too high\n");
    if (profiler->on_gpu)
        text_add_format(out, "launches timed by %s\n", vp_engine_launch_timer(profiler->session->engine));
    if (profiler->ops.dropped_calls + profiler->lost_launches)
        text_add_format(out, "%lld calls are missing: the table was full\n",
                        (long long)(profiler->ops.dropped_calls + profiler->lost_launches));
    if (profiler->negative_idle)
        text_add_format(out, "in %lld stages the operations add up to more than the stage\n",
                        (long long)profiler->negative_idle);
}
/* Writes the table of operations in a form of --profile_format. */
static vp_result write_table(struct text_buffer *out, const struct profiler *profiler, const char *format) {
    vp_ops_print_options how = print_options_of(profiler->settings);
    vp_json_writer writer;
    if (!strcmp(format, "folded")) return vp_ops_print_folded(&profiler->ops, text_sink, out);
    if (!strcmp(format, "csv")) return vp_ops_print_csv(&profiler->ops, text_sink, out);
    if (!strcmp(format, "cprofile")) return vp_ops_print_cprofile(&profiler->ops, &how, text_sink, out);
    if (!strcmp(format, "torch")) return vp_ops_print_torch(&profiler->ops, &how, text_sink, out);
    vp_json_writer_init_sink(&writer, text_sink, out, 1);
    vp_ops_write_json(&writer, &profiler->ops);
    vp_result result = vp_json_finish(&writer);
    text_add_string(out, "\n");
    return result;
}
static void put_memory(vp_json_writer *writer, const struct profiler *profiler) {
    vp_memory_block block;
    PUT(writer, KEY_OBJECT("memory"), KEY_ARRAY("blocks"));
    for (int32_t i = 0; vp_engine_memory(profiler->session->engine, i, &block); i++) {
        PUT(writer, KEY_OBJECT(NULL), KEY("name", block.name), KEY("bytes", block.bytes),
            KEY_BOOL("on_device", profiler->on_gpu && block.on_device), KEY("bytes_a_position", block.bytes_a_position),
            END_OBJECT);
    }
    PUT(writer, END_ARRAY, KEY("peak_resident_bytes", peak_resident_bytes()), END_OBJECT);
}
/* "stages": means over the recorded steps. */
static void put_stages(vp_json_writer *writer, const struct profiler *profiler) {
    double count = (double)profiler->steps;
    PUT(writer, KEY_OBJECT("stages"));
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        if (!(profiler->stage_ns[i] > 0)) continue;
        PUT(writer, KEY_OBJECT(vp_stage_name((vp_stage)i)), KEY("device_ms", profiler->stage_ns[i] / count / 1e6),
            KEY("operations_ms", profiler->op_ns[i] / count / 1e6),
            KEY("idle_ms", (profiler->stage_ns[i] - profiler->op_ns[i]) / count / 1e6), END_OBJECT);
    }
    vp_json_end_object(writer);
}
/* The whole document of run --profile --json. */
static void put_profile(vp_json_writer *writer, const struct profiler *profiler) {
    PUT(writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-profile-1"), KEY("model", profiler->request->model.name),
        KEY_BOOL("synthetic", profiler->request->model.synthetic));
    put_answer(writer, "answer", profiler->timed.runs);
    PUT(writer, KEY("timing", "op"), KEY("launch_timer", vp_engine_launch_timer(profiler->session->engine)),
        KEY("steps", profiler->steps), KEY("step_ms", profiler->total_ns / (double)profiler->steps / 1e6),
        KEY("lost_launches", profiler->lost_launches));
    put_stages(writer, profiler);
    put_memory(writer, profiler);
    put_noise(writer, &profiler->timed.noise);
    PUT(writer, KEY_TEXTS("warnings", &profiler->timed.warnings));
    vp_json_key(writer, "ops");
    vp_ops_write_json(writer, &profiler->ops);
    PUT(writer, KEY_OBJECT("provenance"));
    put_provenance(writer, profiler->settings->options, profiler->session->engine, &profiler->settings->engine);
    vp_json_end_object(writer);
    put_options(writer, "config", profiler->settings->options);
    vp_json_end_object(writer);
}
static vp_result write_json(struct text_buffer *out, const struct profiler *profiler) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, out, 2);
    put_profile(&writer, profiler);
    vp_result result = vp_json_finish(&writer);
    text_add_string(out, "\n");
    return result;
}
/* --sort_by, or the default key for the form of the table and the device. */
static const char *sort_key_of(const struct profiler *profiler, const char *format) {
    const char *asked = profiler->settings->sort_by;
    return asked                         ? asked
           : !strcmp(format, "cprofile") ? "tottime"
           : profiler->on_gpu            ? "self_device_time_total"
                                         : "self_cpu_time_total";
}
/* The table goes to stdout or to --output FILE. If it is readable text or in a file, further lines of text follow on
 * stdout. Returns 0 or an exit code. */
static int profile_print(struct profiler *profiler) {
    const char *format = profiler->settings->format, *file = profiler->settings->output;
    int is_json = profiler->settings->json, is_for_people = !strcmp(format, "torch") || !strcmp(format, "cprofile");
    struct text_buffer table = {NULL, 0, 0}, lines = {NULL, 0, 0};
    vp_result result = vp_ops_sort(&profiler->ops, sort_key_of(profiler, format));
    int code = 0;
    if (result == VP_OK) result = is_json ? write_json(&table, profiler) : write_table(&table, profiler, format);
    if (result != VP_OK) code = complain(EXIT_WORK, "the table of operations: %s", vp_result_text(result));
    if (!code && !is_json && (is_for_people || file)) {
        if (!strcmp(format, "torch")) text_add_string(&lines, OPS_COLUMNS_TEXT);
        write_stages(&lines, profiler);
        if (profiler->settings->profile_memory) write_memory(&lines, profiler);
        write_notes(&lines, profiler);
    }
    if (!code && file) code = file_write_text(file, &table);
    else if (!code) fwrite(table.data, 1, table.bytes, stdout); /* main checks stdout */
    if (!code && lines.bytes) fwrite(lines.data, 1, lines.bytes, stdout);
    FREE_ALL(table.data, lines.data);
    return code;
}
/* Complains if the schedule records none of the requests. Returns 0 or an exit code. */
static int check_schedule(const vp_schedule *schedule, int64_t steps) {
    vp_schedule_sum sum;
    if (vp_schedule_count(schedule, steps, &sum) == VP_OK && sum.recorded_steps + sum.partial_steps >= 1) return 0;
    return complain(EXIT_USAGE, "none of %lld request%s would be recorded: this schedule skips the first %lld",
                    (long long)steps, plural_s((int64_t)steps),
                    (long long)(schedule->skip_first + schedule->wait + schedule->warmup));
}
int profile_run(const struct profile_settings *settings, struct request *request) {
    struct profiler *profiler = zeroed(1, sizeof *profiler);
    vp_noise_reading reading;
    int64_t steps = 0;
    int code = plan_steps(settings, &steps);
    end_in_order(); /* after Ctrl-C the current request is finished, and the records are saved and printed */
    if (!code) code = check_schedule(&settings->schedule, steps);
    profiler->request = request;
    runs_open(&profiler->timed, 1, request->input.engine.max_new_tokens);
    if (!code) code = request_open(request);
    if (!code) code = profiler_open(profiler, settings, &request->session, request->input.engine.max_new_tokens);
    profiler->keeps_request = settings->html != NULL;
    noise_begin(&profiler->timed.noise, &reading);
    if (!code) code = profile_loop(profiler, &settings->schedule, steps);
    noise_end(&profiler->timed.noise, &reading);
    if (!code && !interrupted && profiler->steps) code = profiler_ceilings(profiler, 1);
    close_progress();
    runs_warn(&profiler->timed, &profiler->timed.noise);
    for (size_t i = 0; i < profiler->notes.count; i++) complain(0, "%s", profiler->notes.items[i]);
    if (!code && profiler->steps) code = profile_print(profiler);
    if (!code && profiler->steps && settings->html) code = profile_page_write(profiler);
    if (!code && interrupted) code = EXIT_INTERRUPTED;
    runs_close(&profiler->timed);
    profiler_free(profiler);
    free(profiler);
    return code;
}

/* ---- sweep --use_profiler */
/* Returns 1 if the file exists and starts with this line. The index of a configuration changes with the grid, so a file
 * of that name can belong to another configuration. */
static int has_first_line(const char *path, const char *head) {
    char line[600] = "";
    int fd = -1;
    FILE *file = vp_file_open(path, &fd, NULL) == VP_OK ? fdopen(fd, "rb") : NULL;
    int same =
        file && fgets(line, sizeof line, file) && !strncmp(line, head, strlen(head)) && line[strlen(head)] == '\n';
    if (file) fclose(file);
    return same;
}
/* Records one step after a warm-up step, and a trace of it with --trace. */
static int record_point(struct profiler *profiler, const struct pass_input *input, struct pass_result *run,
                        const char *worker) {
    profiler_step_begin(profiler);
    int code = profiler_step_run(profiler, input, run, 0, 0);
    if (!code) code = profiler_trace_begin(profiler, worker);
    if (code) return code;
    profiler_step_begin(profiler);
    code = profiler_step_run(profiler, input, run, 0, 1);
    return code ? code : profiler_trace_end(profiler);
}
/* Writes OUTPUT_DIR/NAME: the line `head`, the table of operations, the stages. */
static int write_point(struct profiler *profiler, const char *name, const char *head) {
    struct text_buffer out = {NULL, 0, 0};
    int code = 0;
    vp_ops_sort(&profiler->ops, sort_key_of(profiler, "torch"));
    text_add_string(&out, head);
    text_add_string(&out, "\n");
    if (write_table(&out, profiler, "torch") != VP_OK) code = EXIT_WORK;
    text_add_string(&out, OPS_COLUMNS_TEXT);
    write_stages(&out, profiler);
    if (profiler->settings->profile_memory) write_memory(&out, profiler);
    write_notes(&out, profiler);
    if (!code) code = file_write_whole(profiler->settings->output_dir, name, out.data, out.bytes);
    free(out.data);
    return code;
}
int profile_point(const struct profile_settings *settings, struct session *session, const struct pass_input *input,
                  struct pass_result *run, const struct profile_place *place) {
    char name[120], worker[120], head[500], *path;
    struct profiler *profiler;
    if (settings->points == PROFILE_NONE || (settings->points == PROFILE_FIRST && !place->is_first)) return 0;
    snprintf(worker, sizeof worker, "config_%zu_sample_%lld", place->configuration_index, (long long)place->sample_id);
    snprintf(name, sizeof name, "profiler_results_%.90s.txt", worker);
    snprintf(head, sizeof head, "%.400s, sample %lld", place->file_name, (long long)place->sample_id);
    path = join_path(settings->output_dir, name);
    int is_there = has_first_line(path, head);
    free(path);
    if (is_there) return 0;
    profiler = zeroed(1, sizeof *profiler);
    int code = profiler_open(profiler, settings, session, input->engine.max_new_tokens);
    if (!code) code = record_point(profiler, input, run, worker);
    if (!code && profiler->steps) code = write_point(profiler, name, head);
    profiler_free(profiler);
    free(profiler);
    return code == EXIT_OUTPUT ? code : 0;
}
