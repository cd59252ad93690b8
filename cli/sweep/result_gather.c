/* result_gather.c: reads the points of a configuration from their journals and gathers their numbers into lists. */
#include "sweep/result_gather.h"

#include "base/console.h"
#include "vlmprof_score.h"

#include <math.h>

/* ---- a point in its journal */
static void measured_clear(struct measured *measured) {
    for (int32_t i = 0; i < measured->count; i++) free(measured->marks[i].telemetry);
    runs_free(measured->runs, measured->count);
    sample_free(&measured->sample);
    FREE_ALL(measured->marks, measured->failed, measured->stop);
    fields_free(&SIZES, &measured->sizes);
    fields_free(&SERVED_SIZES, &measured->served_sizes);
    fields_free(&TWINS_OBJECT, &measured->twins);
    fields_free(&FIDELITY_OBJECT, &measured->fidelity);
    memset(measured, 0, sizeof *measured);
}
void measured_free(struct measured *measured) { measured_clear(measured); }

/* Sets what follows from a run's line. Returns 0, or EXIT_OUTPUT if the line is not a run's. */
static int finish_run(struct pass_result *run) {
    if (run->served) {
        runs_set_unknown(run);
        run->served->uploaded_ns = run->served->first_chunk_ns = run->served->image_dropped = -1;
        served_read_timings(run->served);
        if (run->served->usage.completion_tokens > 0)
            run->reply.token_count = (int32_t)run->served->usage.completion_tokens;
        run->reply.ended_by_eos = run->served->finish_reason && !strcmp(run->served->finish_reason, "stop");
    } else if (!run->reply.tokens) return EXIT_OUTPUT;
    return run->total_ns > 0 ? 0 : EXIT_OUTPUT;
}
/* Adds the run of a line. Returns 0, or EXIT_OUTPUT if it is not a run's line. */
static int add_run(struct measured *measured, const vp_json *json, int64_t at) {
    const int is_served = has_value(json, 0, "served");
    struct run_line line;
    vp_reply *reply = &line.pass.reply;
    fields_read(json, 0, is_served ? &SERVED_RUN : &RUN, &line);
    measured->runs = grown(measured->runs, (size_t)measured->count, sizeof *measured->runs);
    measured->marks = grown(measured->marks, (size_t)measured->count, sizeof *measured->marks);
    if (reply->step_ns && line.step_count < reply->token_count) { /* no step times, or not all */
        reply->step_ns = resize(reply->step_ns, (size_t)reply->token_count + 1, sizeof *reply->step_ns);
        for (int32_t i = line.step_count; i <= reply->token_count; i++) reply->step_ns[i] = 0;
    }
    measured->marks[measured->count] = (struct run_mark){.is_throttled = line.throttled, .session = line.session,
        .unix_s = line.unix_s, .telemetry = (char *)(size_t)line.telemetry, .at = at};
    measured->stamps = line.stamps;
    measured->runs[measured->count] = line.pass;
    free((char *)(size_t)line.config);
    return finish_run(&measured->runs[measured->count++]);
}
/* The journal links each run to the previous one, so runs are read in reverse order. */
static void reverse_runs(struct measured *measured) {
    for (int32_t i = 0, k = measured->count - 1; i < k; i++, k--) {
        struct pass_result run = measured->runs[i];
        struct run_mark mark = measured->marks[i];
        measured->runs[i] = measured->runs[k];
        measured->marks[i] = measured->marks[k];
        measured->runs[k] = run;
        measured->marks[k] = mark;
    }
}
/* Takes over one line of a point: a run, a pair with and without stage times, twins, or the line that closes the
 * point. Returns 0, or EXIT_INPUT if it is none of these or cannot be read. */
static int take_line(struct measured *measured, const vp_json *json, int64_t at) {
    uint32_t bare = vp_json_get(json, 0, "bare"), twins = vp_json_get(json, 0, "twins"),
             sizes = vp_json_get(json, 0, "sizes"), fidelity = vp_json_get(json, 0, "fidelity");
    if (twins != VP_JSON_NONE) { /* the last line has all pairs, and is read first */
        if (!measured->has_twins) fields_read(json, twins, &TWINS_OBJECT, &measured->twins);
        measured->has_twins = 1;
        return 0;
    }
    if (fidelity != VP_JSON_NONE) {
        fields_free(&FIDELITY_OBJECT, &measured->fidelity);
        fields_read(json, fidelity, &FIDELITY_OBJECT, &measured->fidelity);
        measured->has_fidelity = 1;
        return 0;
    }
    if (vp_json_get(json, 0, "run") != VP_JSON_NONE) return add_run(measured, json, at);
    if (bare != VP_JSON_NONE) {
        fields_read(json, bare, &BARE_PAIR, &measured->bare);
        return 0;
    }
    if (vp_json_get(json, 0, "done") == VP_JSON_NONE && vp_json_get(json, 0, "failed") == VP_JSON_NONE)
        return EXIT_INPUT;
    measured->failed = node_text(json, vp_json_get(json, 0, "failed"));
    measured->stop = node_text(json, vp_json_get(json, 0, "stop"));
    measured->retries = node_int(json, 0, "retries", 0);
    measured->has_sizes = node_is(json, sizes, VP_JSON_OBJECT);
    if (vp_json_get(json, sizes, "sent_image") == VP_JSON_NONE) fields_read(json, sizes, &SIZES, &measured->sizes);
    else fields_read(json, sizes, &SERVED_SIZES, &measured->served_sizes);
    return 0;
}
/* Reads the lines of a point, from the last one back. */
static int read_lines(struct journal_index *index, int32_t file, int64_t last, struct measured *measured) {
    const vp_json *json = &index->scratch.json;
    for (int64_t at = last, before; at >= 0; at = before) {
        int code = index_read_line(index, file, at);
        if (code) return code;
        before = node_int(json, 0, "prev", -1);
        if (take_line(measured, json, at))
            return complain(EXIT_INPUT, "%s: the line at byte %lld is not valid", index->files[file].path,
                            (long long)at);
        if (before >= at)
            return complain(EXIT_INPUT, "%s: the line at byte %lld has no valid \"prev\"", index->files[file].path,
                            (long long)at);
    }
    reverse_runs(measured);
    return 0;
}
int measured_read(struct journal_index *index, const struct index_configuration *configuration,
                  const struct index_entry *entry, struct measured *measured) {
    const vp_json *json = &index->scratch.json;
    int code;
    measured_clear(measured);
    if ((code = read_lines(index, entry->file, index_point(entry, configuration).at, measured)) != 0) return code;
    for (int32_t i = 0; i < measured->count; i++) {
        const double overhead_ms = fmax(0, fmax(measured->sizes.overhead_ms, measured->served_sizes.overhead_ms));
        measured->runs[i].overhead_ns = llround(1e6 * overhead_ms);
        measured->runs[i].total_ns += measured->runs[i].overhead_ns;
    }
    if (!measured->has_sizes)
        return complain(EXIT_INPUT, "%s: a point of sample %lld lacks its sizes", index->files[entry->file].path,
                        (long long)entry->id);
    if ((code = index_read_line(index, entry->file, entry->line_at)) != 0) return code;
    measured->sample.id = entry->id;
    measured->sample.prompt = node_text(json, vp_json_get(json, 0, "prompt"));
    measured->sample.record = json_text(json, vp_json_get(json, 0, "metadata"));
    if (!measured->sample.record)
        return complain(EXIT_INPUT, "%s: the line for sample %lld cannot be read back", index->files[entry->file].path,
                        (long long)entry->id);
    for (int32_t i = 0; i < measured->count; i++)
        if (!index_has_session(index, entry->file, measured->marks[i].session)) measured->marks[i].session = -1;
    for (int32_t i = 0; i < measured->count; i++) {
        const vp_noise nothing = {(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
        const struct index_file *file = &index->files[entry->file];
        size_t block = index_block_of(index, entry->file, measured->marks[i].at);
        measured->marks[i].noise = block < file->block_count ? file->blocks[block].noise : nothing;
    }
    measured->point = (struct point){
        .sample = &measured->sample, .knobs = &configuration->knobs, .runs = measured->runs,
        .run_count = measured->failed ? 0 : measured->count, .reason = measured->failed,
        .is_served = knobs_are_served(&configuration->knobs), .ignore_eos = index->head.ignore_eos};
    if (vp_score_metric_find(index->sets[configuration->set].data.metric, &measured->point.metric) != VP_OK)
        measured->point.metric = VP_SCORE_VQA_SEED;
    return 0;
}
vp_result find_outliers(const double *values, size_t count, double threshold, double *scratch, uint8_t *flags,
                        struct outliers *outliers) {
    struct outliers out = {0};
    if (!(threshold > 0.0) || !vp_statistics_all_finite(values, count)) return VP_ERR_RANGE;
    if (count < OUTLIER_COUNT_MIN) return VP_ERR_UNSUPPORTED;
    memcpy(scratch, values, count * sizeof *values);
    vp_sort_double(scratch, count);
    out.median = vp_statistics_percentile(scratch, count, 50.0);
    for (size_t i = 0; i < count; i++) scratch[i] = fabs(values[i] - out.median);
    if (!vp_statistics_all_finite(scratch, count)) return VP_ERR_RANGE;
    double scale = 1.253314 * vp_statistics_mean(scratch, count);
    vp_sort_double(scratch, count);
    out.mad = vp_statistics_percentile(scratch, count, 50.0);
    if (out.mad > 0.0) scale = out.mad / 0.6745;
    for (size_t i = 0; i < count; i++) {
        const double score = scale > 0.0 ? (values[i] - out.median) / scale : 0.0;
        const int outside = fabs(score) > threshold;
        if (flags) flags[i] = (uint8_t)outside;
        out.count += (size_t)outside;
        if (i == 0) out.first_score = score;
    }
    out.slow_first = out.first_score > threshold;
    *outliers = out;
    return VP_OK;
}
int can_find_outliers(const struct measured *measured, uint8_t *flags, struct outliers *outliers) {
    double *values = resize(NULL, (size_t)measured->count * 2, sizeof *values);
    for (int32_t i = 0; i < measured->count; i++) values[i] = metric_of(&measured->runs[i], METRIC_TOTAL);
    memset(flags, 0, (size_t)measured->count);
    memset(outliers, 0, sizeof *outliers);
    int known =
        find_outliers(values, (size_t)measured->count, OUTLIER_THRESHOLD, values + measured->count, flags, outliers)
        == VP_OK;
    free(values);
    return known;
}

/* ---- lists of numbers */
void gathered_free(struct gathered *gathered) {
    for (int i = 0; i < LIST_COUNT; i++) free(gathered->lists[i].values);
    FREE_ALL(gathered->sessions, gathered->has_block, gathered->twins.reason, gathered->twins.pairs, gathered->baseline,
             gathered->fidelity_reason, gathered->prompts.items, gathered->counts.items);
}
static void list_add(struct number_list *list, double value) {
    if (!isfinite(value)) return;
    *ADDED(list->values, list->count) = value;
}
size_t gathered_session(const struct gathered *gathered, int32_t file, int64_t at) {
    size_t index = 0;
    while (index < gathered->session_count
           && (gathered->sessions[index].file != file || gathered->sessions[index].at != at))
        index++;
    return index;
}

/* ---- prompts that are too short for their images */
struct prompt_count prompt_count_of(uint64_t sizes, const char *text, int64_t by_rule, int64_t tokens) {
    struct prompt_count prompt = {sizes, hash_text(sizes, text), tokens, (int64_t)strlen(text) + 1, 0};
    int64_t words = 0;
    for (const char *at = text; *(at += strspn(at, " \t\r\n")); at += strcspn(at, " \t\r\n")) words++;
    if (by_rule >= 0) prompt.least = by_rule + words / 2;
    return prompt;
}
void prompts_add(struct prompts *prompts, const struct prompt_count *prompt) {
    struct prompt_count *at = prompts->items, *end = at + prompts->count;
    while (at < end && at->same != prompt->same) at++;
    if (at < end && at->tokens < prompt->tokens) at->tokens = prompt->tokens;
    if (at < end || prompt->tokens < 0) return;
    *ADDED(prompts->items, prompts->count) = *prompt;
}
int64_t prompts_least(const struct prompts *prompts, const struct prompt_count *prompt) {
    int64_t least = prompt->least;
    for (size_t i = 0; i < prompts->count; i++) {
        const struct prompt_count *other = &prompts->items[i];
        const int64_t needs = other->same == prompt->same ? other->tokens : other->tokens - other->text;
        if (other->sizes == prompt->sizes && needs > least) least = needs;
    }
    return least;
}
/* The prompt of a run. Returns 0 if it has no image, or no known count. */
static int prompt_of(const struct measured *measured, int32_t run, struct prompt_count *prompt) {
    const struct served_sizes *sizes = &measured->served_sizes;
    uint64_t hash = HASH_START;
    if (sizes->sent_image)
        hash = hash_number(hash_number(hash, sizes->sent_image->width_px), sizes->sent_image->height_px);
    for (int64_t i = 0; i < sizes->sent_sizes_of_images.count; i++)
        hash = hash_number(hash, sizes->sent_sizes_of_images.items[i]);
    if (hash == HASH_START || !measured->sample.prompt || measured->failed) return 0;
    if (sizes->chosen_config) hash = hash_text(hash, sizes->chosen_config);
    *prompt = prompt_count_of(hash, measured->sample.prompt, sizes->image_tokens_by_rule,
                              measured->runs[run].served->usage.prompt_tokens);
    return prompt->tokens >= 0;
}
void mark_dropped(const struct gathered *gathered, struct measured *measured) {
    struct prompt_count prompt;
    for (int32_t i = 0; i < measured->count && measured->point.is_served; i++)
        if (prompt_of(measured, i, &prompt)) {
            const int is_dropped = prompt.tokens < prompts_least(&gathered->prompts, &prompt);
            if (is_dropped || measured->runs[i].served->delay_ns >= 0) /* files of old journals do not change */
                measured->runs[i].served->image_dropped = is_dropped;
        }
}

/* ---- adding a point to the lists */
static double count_of(int64_t count) { return count < 0 ? (double)NAN : (double)count; }
/* For a server, only the target is known, and the image tokens if the server counts them. */
static void gather_served(struct gathered *gathered, const struct measured *measured) {
    const vp_chat_usage *usage = measured->count && !measured->failed ? &measured->runs[0].served->usage : NULL;
    double target = count_of(measured->served_sizes.target_vision_tokens),
           actual = usage ? count_of(usage->image_tokens) : (double)NAN;
    list_add(&gathered->lists[LIST_TARGET], target);
    list_add(&gathered->lists[LIST_ACTUAL], actual);
    list_add(&gathered->lists[LIST_DIFF], target - actual);
    for (int32_t i = 0; i < measured->count && usage; i++) {
        struct prompt_count prompt;
        if (prompt_of(measured, i, &prompt)) {
            prompts_add(&gathered->prompts, &prompt);
            *ADDED(gathered->counts.items, gathered->counts.count) = prompt;
        }
        gathered->cached_count += is_prompt_cached(&measured->runs[i]);
        for (int metric = 0; metric < METRIC_STAGE; metric++)
            if (!gathered->lacks[metric] && !is_left_out(metric, (double)NAN))
                gathered->lacks[metric] = served_lacks(&measured->runs[i], metric);
    }
}
static void gather_layout(struct gathered *gathered, const struct sizes *sizes) {
    double target = count_of(sizes->target_vision_tokens), actual = count_of(sizes->actual_vision_tokens);
    const struct field_pair tiling = sizes->actual_tiling, canvas = sizes->theoretical_image_size;
    list_add(&gathered->lists[LIST_TARGET], target);
    list_add(&gathered->lists[LIST_ACTUAL], actual);
    list_add(&gathered->lists[LIST_DIFF], target - actual);
    list_add(&gathered->lists[LIST_CROPS], count_of(sizes->actual_num_crops));
    if (tiling.first < 0 || canvas.first < 0) return;
    list_add(&gathered->lists[LIST_TILING], (double)(tiling.first * 65536 + tiling.second));
    list_add(&gathered->lists[LIST_HEIGHT], (double)canvas.first);
    list_add(&gathered->lists[LIST_WIDTH], (double)canvas.second);
    list_add(&gathered->lists[LIST_TOKENS], count_of(sizes->theoretical_vision_tokens));
}
/* Adds the pairs to those of all points. */
static void gather_twins(struct gathered *gathered, const struct measured *measured) {
    const struct twins_object *twins = &measured->twins;
    struct gathered_twins *all = &gathered->twins;
    if (!measured->has_twins) return;
    all->are_there = 1;
    if (twins->reason && !all->reason) all->reason = copy_text(twins->reason, strlen(twins->reason));
    if (!twins->count) return;
    all->pairs = resize(all->pairs, (size_t)all->count + (size_t)twins->count, sizeof *all->pairs);
    memcpy(all->pairs + all->count, twins->pairs, (size_t)twins->count * sizeof *all->pairs);
    all->count += twins->count;
}
/* Adds the comparison of a row with its baseline. */
static void gather_fidelity(struct gathered *gathered, const struct fidelity *fidelity) {
    double sum = 0, margin = isfinite(fidelity->baseline_margin) ? fidelity->baseline_margin : fidelity->margin;
    if (!gathered->baseline) gathered->baseline = copy_text(fidelity->baseline, strlen(fidelity->baseline));
    if (fidelity->reason && !gathered->fidelity_reason)
        gathered->fidelity_reason = copy_text(fidelity->reason, strlen(fidelity->reason));
    for (int32_t i = 0; i < fidelity->divergence_count; i++) {
        list_add(&gathered->lists[LIST_DIVERGENCE], fidelity->divergences[i].nats);
        list_add(&gathered->lists[LIST_AT_MOST], fidelity->divergences[i].at_most);
        sum += fidelity->divergences[i].nats;
    }
    if (fidelity->answers_equal >= 0) list_add(&gathered->lists[LIST_ANSWER_AGREEMENT], fidelity->answers_equal);
    if (fidelity->positions) {
        list_add(&gathered->lists[LIST_ROW_DIVERGENCE], sum);
        list_add(&gathered->lists[LIST_ROW_TOKENS], fidelity->positions);
        list_add(&gathered->lists[LIST_ROW_EQUAL], fidelity->top1_count);
        list_add(&gathered->lists[LIST_ROW_TOP1], (double)fidelity->top1_count / fidelity->positions);
    }
    if (fidelity->first_difference < 0) return;
    list_add(&gathered->lists[LIST_FIRST_DIFFERENCE], fidelity->first_difference);
    list_add(&gathered->lists[LIST_MARGIN], fidelity->margin);
    list_add(&gathered->lists[LIST_BASELINE_MARGIN], fidelity->baseline_margin);
    gathered->tie_count += margin < TIE_NATS;
}
/* Adds the dates of the runs, their sessions, and the number of throttled runs. */
static void gather_marks(struct gathered *gathered, const struct measured *measured, int32_t file) {
    for (int32_t i = 0; i < measured->count; i++) {
        const struct run_mark *mark = &measured->marks[i];
        const struct used_session used = {file, mark->session};
        gathered->throttled_count += mark->is_throttled;
        if (!gathered->first_s || mark->unix_s < gathered->first_s) gathered->first_s = mark->unix_s;
        if (mark->unix_s > gathered->last_s) gathered->last_s = mark->unix_s;
        if (gathered_session(gathered, file, mark->session) < gathered->session_count) continue;
        *ADDED(gathered->sessions, gathered->session_count) = used;
    }
}
/* Adds the times of the decode steps with their positions. */
static void gather_steps(struct gathered *gathered, const struct pass_result *run) {
    if (!run->reply.times.ran[VP_STAGE_DECODE]) return;
    for (int32_t step = 0; step + 1 < run->reply.token_count; step++) {
        list_add(&gathered->lists[LIST_STEP], (double)run->reply.step_ns[step] / 1e6);
        list_add(&gathered->lists[LIST_STEP_AT], step + 1);
    }
}
/* Adds each block that contains runs of the point, once. */
static void gather_blocks(struct gathered *gathered, const struct journal_index *index, const struct measured *measured,
                          int32_t file) {
    size_t first = 0;
    for (int32_t i = 0; i < file; i++) first += index->files[i].block_count;
    for (int32_t i = 0; i < measured->count; i++) {
        size_t block = index_block_of(index, file, measured->marks[i].at);
        if (block == index->files[file].block_count || gathered->has_block[first + block]) continue;
        gathered->has_block[first + block] = 1;
        vp_noise_add(&gathered->noise, &index->files[file].blocks[block].noise);
    }
}
/* The work of a stage: operations, or bytes if it has no operations; for decode, steps. 0: not known. */
static double stage_work(const struct pass_result *run, int stage) {
    if (stage == VP_STAGE_DECODE) return run->reply.token_count - 1;
    return (double)(run->reply.times.flops[stage] ? run->reply.times.flops[stage] : run->reply.times.bytes[stage]);
}
/* Host stages are skipped: their work is not counted. */
static struct neighbour neighbour_of(const struct measured *measured, int32_t file) {
    struct neighbour now = {.file = file, .session = measured->marks[0].session};
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        if (is_host_stage(stage) || !measured->runs[0].reply.times.ran[stage]) continue;
        now.ms[stage] = stage_value(&measured->runs[0], stage, 0);
        now.work[stage] = stage_work(&measured->runs[0], stage);
    }
    return now;
}
/* Returns 1 if both runs had the same stages, with work that differs by at most 2 %. With a larger difference, the time
 * per operation would also differ. Decode consists of equal steps, so any number of them is accepted. */
static int is_same_work(const struct neighbour *left, const struct neighbour *right) {
    if (left->file != right->file || left->session != right->session) return 0;
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        double least = fmin(left->work[stage], right->work[stage]), most = fmax(left->work[stage], right->work[stage]);
        if (stage == VP_STAGE_DECODE ? !(least > 0) != !(most > 0) : !(most <= 1.02 * least)) return 0;
    }
    return 1;
}
/* The logarithm of the ratio of a run's time to the time expected from its neighbour's time per work. */
static double slower_by(const struct neighbour *run, const struct neighbour *before) {
    double taken = 0, expected = 0;
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        if (!(run->work[stage] > 0)) continue;
        taken += run->ms[stage];
        expected += before->ms[stage] * run->work[stage] / before->work[stage];
    }
    return log(taken / expected);
}
/* Compares the point's first run with the latest run that did the same work, and replaces that run. */
static void gather_neighbour(struct gathered *gathered, const struct measured *measured, int32_t file) {
    struct neighbour now = neighbour_of(measured, file);
    int32_t place = 0;
    while (place < gathered->neighbour_count && !is_same_work(&gathered->neighbours[place], &now)) place++;
    if (place < gathered->neighbour_count)
        list_add(&gathered->lists[LIST_NEIGHBOURS], slower_by(&now, &gathered->neighbours[place]));
    else if (gathered->neighbour_count < NEIGHBOURS) gathered->neighbour_count++;
    else place--; /* the oldest is dropped */
    memmove(gathered->neighbours + 1, gathered->neighbours, (size_t)place * sizeof now);
    gathered->neighbours[0] = now;
}
double measured_decode_rate(const struct measured *measured) {
    return 1e3 / metric_mean(measured->runs, measured->count, METRIC_PER_TOKEN);
}
/* Returns 1 if the number of tokens in the answer is known. */
static int is_output_known(const struct pass_result *run) {
    return !run->served || run->served->usage.completion_tokens >= 0;
}
double measured_output_rate(const struct measured *measured) {
    if (!is_output_known(&measured->runs[0])) return (double)NAN;
    return 1e3 * measured->runs[0].reply.token_count / metric_mean(measured->runs, measured->count, METRIC_TOTAL);
}
static void gather_runs(struct gathered *gathered, const struct measured *measured, int32_t file) {
    uint8_t *flags = zeroed((size_t)measured->count, 1);
    struct outliers outliers;
    if (can_find_outliers(measured, flags, &outliers)) gathered->outlier_count += (int64_t)outliers.count;
    free(flags);
    for (int metric = 0; metric < METRIC_ALL; metric++) {
        list_add(&gathered->lists[LIST_METRICS + metric], metric_mean(measured->runs, measured->count, metric));
        for (int32_t i = 0; i < measured->count; i++)
            list_add(&gathered->lists[LIST_RUNS + metric], metric_of(&measured->runs[i], metric));
    }
    for (int32_t i = 0; i < measured->count; i++) gather_steps(gathered, &measured->runs[i]);
    gather_marks(gathered, measured, file);
    const int is_alone = !knobs_are_loaded(measured->point.knobs); /* under load, requests wait for each other */
    if (is_alone) gather_neighbour(gathered, measured, file);
    for (int32_t i = 1; i < measured->count && is_alone; i++)
        list_add(&gathered->lists[LIST_REPEATS],
                 log((double)measured->runs[i].total_ns / (double)measured->runs[i - 1].total_ns));
    gathered->run_count += measured->count;
    list_add(&gathered->lists[LIST_OUTPUT],
             is_output_known(&measured->runs[0]) ? measured->runs[0].reply.token_count : (double)NAN);
    for (int32_t i = 0; i < (is_alone ? 1 : measured->count); i++) {
        const struct pass_result *run = &measured->runs[i];
        list_add(&gathered->lists[LIST_DECODE_RATE], is_alone ? measured_decode_rate(measured) : decode_rate_of(run));
        list_add(&gathered->lists[LIST_OUTPUT_RATE], is_alone ? measured_output_rate(measured) : output_rate_of(run));
    }
    if (measured->runs[0].served) return; /* its times do not include the tool's cost */
    list_add(&gathered->lists[LIST_STAMPS], (double)measured->stamps);
    if (measured->bare.bare_ns <= 0 || measured->bare.staged_ns <= 0) return;
    list_add(&gathered->lists[LIST_BARE], (double)measured->bare.bare_ns / 1e6);
    list_add(&gathered->lists[LIST_STAGED], (double)measured->bare.staged_ns / 1e6);
}
static void gather_point(struct gathered *gathered, const struct measured *measured, int32_t file) {
    const struct point *point = &measured->point;
    vp_score_outcome outcome;
    struct scoring scoring;
    if (point->is_served) gather_twins(gathered, measured);
    if (measured->has_fidelity) gather_fidelity(gathered, &measured->fidelity);
    if (point->is_served) gather_served(gathered, measured); else gather_layout(gathered, &measured->sizes);
    if (measured->failed) gathered->failed_count++; else gathered->ok_count++;
    gathered->retry_count += measured->retries;
    for (int i = 0; measured->stop && i <= STOP_LAST_; i++) gathered->stops[i] += !strcmp(measured->stop, stop_name(i));
    if (point->run_count) gather_runs(gathered, measured, file);
    score_point(point, &scoring, &outcome);
    double accuracy = outcome.is_unparsed ? 0 : outcome.score;
    list_add(&gathered->lists[LIST_ACCURACY], accuracy);
    tally_add(&gathered->tally, accuracy, 0, 0);
    gathered->unparsed_count += point->run_count && outcome.is_unparsed;
    gathered->truncated_count += point->run_count && !point->ignore_eos && is_truncated(&point->runs[0]) == 1;
    gathered->empty_count += point->run_count && outcome.cleaned && !outcome.cleaned[0];
    scoring_free(&scoring);
}

/* Pairs of runs of one request are preferred to pairs of two requests, which need a correction for their work. */
static void gather_spreads(struct gathered *gathered) {
    const struct number_list *repeats = &gathered->lists[LIST_REPEATS], *bare = &gathered->lists[LIST_BARE],
                             *staged = &gathered->lists[LIST_STAGED];
    struct number_list pairs = repeats->count >= VP_NOISE_PAIRS_MIN ? *repeats : gathered->lists[LIST_NEIGHBOURS];
    double *ratios = resize(NULL, bare->count, sizeof *ratios);
    for (size_t i = 0; i < bare->count; i++) ratios[i] = log(staged->values[i] / bare->values[i]);
    gathered->noise.pair_count = (int64_t)pairs.count;
    gathered->noise.spread = vp_noise_spread(pairs.values, pairs.count); /* (their order is no longer needed) */
    gathered->noise.bare_pair_count = (int64_t)bare->count;
    gathered->noise.bare_spread = vp_noise_spread(ratios, bare->count);
    free(ratios);
}

/* ---- a configuration */
int is_closed_point(const struct index_entry *entry, const struct index_configuration *configuration) {
    return index_point(entry, configuration).state != POINT_OPEN;
}
int gather_configuration(struct journal_index *index, const struct index_configuration *configuration,
                         struct gathered *gathered) {
    const struct index_set *set = &index->sets[configuration->set];
    struct measured measured = {0};
    size_t blocks = 0;
    int code = 0;
    for (int32_t i = 0; i < index->file_count; i++) blocks += index->files[i].block_count;
    gathered->has_block = zeroed(blocks + 1, sizeof *gathered->has_block);
    gathered->noise = vp_noise_summary_none();
    for (size_t i = 0; i < set->count && !code; i++) {
        if (!is_closed_point(set->entries[i], configuration)) continue;
        if ((code = measured_read(index, configuration, set->entries[i], &measured)) != 0) break;
        gather_point(gathered, &measured, set->entries[i]->file);
        if (measured.point.run_count) gather_blocks(gathered, index, &measured, set->entries[i]->file);
    }
    gather_spreads(gathered);
    for (size_t i = 0; i < gathered->counts.count; i++)
        gathered->dropped_count +=
            gathered->counts.items[i].tokens < prompts_least(&gathered->prompts, &gathered->counts.items[i]);
    gathered->missing_count = set->data.num_samples - gathered->ok_count - gathered->failed_count;
    measured_free(&measured);
    return code;
}
