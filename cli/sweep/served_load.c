/* served_load.c: measures a sweep of servers under load. A block is one configuration at one load over the open samples
 * of its data set; blocks alternate in rounds, in a random order that changes with the round. Each request that
 * ends is a line of the journal, so that a stopped sweep continues in the middle of a block. */
#include "sweep/sweep.h"

#include "base/console.h"
#include "data/dataset.h"
#include "server/arrivals.h"
#include "server/ask.h"

#include <math.h>
#include <time.h>

enum { SILENT_MOST = 8 }; /* after this many requests in succession without an answer, the server is down */

/* A block. */
struct load_block {
    struct sweep *sweep;
    struct configuration *configuration;
    struct endpoint *endpoint;
    struct open_point *points; struct sample *samples; size_t count; /* its counted requests */
    size_t *at;                                                      /* their samples in the data set */
    struct open_point *states;                                       /* all points of the configuration */
    size_t *silent; struct text_list silent_reasons; /* failures since the last answer, not yet written */
    struct launched_server *server;
    int has_answer;
};
static struct load_block block_make(struct sweep *sweep, struct configuration *configuration, struct open_point *states,
                                    struct launched_server *server) {
    const size_t most = configuration->set->count;
    return (struct load_block){.sweep = sweep, .configuration = configuration, .states = states, .server = server,
                               .endpoint = served_endpoint(sweep, configuration),
                               .points = zeroed(most, sizeof(struct open_point)),
                               .samples = zeroed(most, sizeof(struct sample)), .at = zeroed(most, sizeof(size_t)),
                               .silent = zeroed(most, sizeof(size_t))};
}
static void block_free(struct load_block *block) {
    for (size_t i = 0; i < block->count; i++) {
        served_release(&block->points[i]);
        sample_free(&block->samples[i]);
    }
    FREE_ALL(block->points, block->samples, block->at, block->silent);
    text_list_free(&block->silent_reasons);
}

/* ---- the callbacks of load_run */
static int body_of(void *user, size_t request, vp_exchange *exchange) {
    struct load_block *block = user;
    const struct question question =
        served_question(block->sweep, &block->points[request], &block->samples[request]);
    char reason[LINE_BYTES];
    const int code = ask_prepare(block->endpoint, &question, exchange, reason, sizeof reason);
    return code ? complain(code, "%s", reason) : 0;
}
static int write_failure(struct load_block *block, size_t request, const char *reason) {
    struct open_point *point = &block->points[request];
    const int code = point_write_failed(block->sweep, point, &block->samples[request], reason, 0);
    block->states[block->at[request]].is_open = 0;
    return code;
}
/* Writes the failures since the last answer: they are the requests' own, because the server answers. */
static int write_silent(struct load_block *block) {
    int code = 0;
    for (size_t i = 0; i < block->silent_reasons.count && !code; i++)
        code = write_failure(block, block->silent[i], block->silent_reasons.items[i]);
    text_list_free(&block->silent_reasons);
    return code;
}
static int request_failed(struct load_block *block, size_t request, const vp_exchange *exchange) {
    char reason[LINE_BYTES];
    endpoint_reason(block->endpoint, exchange, reason, sizeof reason);
    if (block->server->log && !launch_is_alive(block->server))
        launch_exit_text(block->server, "", reason, sizeof reason);
    if (exchange->http_status || block->sweep->plan.settings.servers.launch.ready)
        return write_failure(block, request, reason);
    block->silent[block->silent_reasons.count] = request;
    text_list_copy(&block->silent_reasons, reason);
    const size_t count = block->silent_reasons.count;
    if ((count < SILENT_MOST && count < block->count) || (block->has_answer && !endpoint_is_down(exchange))) return 0;
    complain(EXIT_DEVICE, "%zu requests in succession got no answer: %s", count, reason);
    sweep_message(block->sweep, "stopped", RESTART_REMEDY);
    return EXIT_DEVICE;
}
static int request_ended(void *user, size_t request, vp_exchange *exchange) {
    struct load_block *block = user;
    struct sweep *sweep = block->sweep;
    struct open_point *point = &block->points[request], *state = &block->states[block->at[request]];
    int code;
    if (exchange->state != VP_EXCHANGE_DONE) return request_failed(block, request, exchange);
    if ((code = write_silent(block)) != 0) return code;
    block->has_answer = 1;
    runs_free(sweep->run, 1);
    sweep->run = runs_make(1, 1);
    ask_result(exchange, sweep->run);
    if ((code = point_write_run(sweep, point, &block->samples[request], sweep->run)) != 0) return code;
    point->runs++;
    sweep->runs_now++;
    served_check_prompt(sweep, point, &block->samples[request]);
    if (point->runs >= sweep->rule.min_runs)
        code = point_write_done(sweep, point, &block->samples[request], STOP_RUNS);
    state->runs = point->runs;
    state->last = point->last;
    state->is_open = point->is_open;
    return code;
}

/* ---- the line of a block */
static double ms_since(int64_t at_ns, const struct load_record *record) {
    return record->has_failed || at_ns < 0 ? (double)NAN : (double)(at_ns - record->due_ns) / 1e6;
}
static int write_load(struct sweep *sweep, const struct load_line *line, const struct load_record *records,
                      size_t count) {
    vp_json_writer *writer = journal_line_begin(&sweep->journal);
    PUT(writer, KEY_OBJECT("load"));
    fields_put(writer, &LOAD_LINE, line);
    PUT(writer, KEY_ARRAY("ramp"));
    for (size_t i = 0; i < count; i++) {
        if (!records[i].is_ramp) continue;
        vp_json_begin_array(writer);
        vp_json_double(writer, (double)records[i].due_ns / 1e6);
        json_double_or_null(writer, ms_since(records[i].first_ns, &records[i]));
        json_double_or_null(writer, ms_since(records[i].end_ns, &records[i]));
        vp_json_end_array(writer);
    }
    PUT(writer, END_ARRAY, END_OBJECT);
    return journal_line_append(&sweep->journal);
}
/* The requests of others: those that the server finished beyond ours, or had while we had none in flight. */
static int64_t requests_of_others(struct server_counts before, struct server_counts after, int64_t ours) {
    int64_t others = before.held > after.held ? before.held : after.held;
    if (before.finished >= 0 && after.finished >= before.finished && after.finished - before.finished - ours > others)
        others = after.finished - before.finished - ours;
    return before.finished >= 0 && others < 0 ? 0 : others;
}
static void warn_of_block(const struct configuration *configuration, const struct load_line *line) {
    if (line->is_growing)
        complain(0, "%s: no steady state: %lld of %lld requests were waiting at the end of the block",
                 configuration->file_name, (long long)line->waiting, (long long)line->requests);
    if (100 * line->late > line->requests)
        complain(0, "%s: %lld of %lld requests were sent more than 5 ms late: this client could not keep up",
                 configuration->file_name, (long long)line->late, (long long)line->requests);
    if (line->other_requests > 0)
        complain(0, "%s: other clients also sent the server %lld requests during the block", configuration->file_name,
                 (long long)line->other_requests);
}
static int run_block(struct load_block *block, int64_t round, size_t number, size_t of) {
    struct sweep *sweep = block->sweep;
    const struct knob_values *knobs = &block->configuration->knobs;
    const char *rate = knob_text(knobs, KNOB_RATE), *streams = knob_text(knobs, KNOB_CONCURRENCY);
    const uint64_t seed = hash_number(hash_number(HASH_START, sweep->plan.settings.data.seed), round);
    const struct load load = {.rate = rate ? strtod(rate, NULL) : 0, .is_uniform = sweep->settings.is_uniform,
                              .concurrency = streams ? (int32_t)strtol(streams, NULL, 10) : 0,
                              .seed = (uint32_t)(seed >> 16), .ramp_s = sweep->settings.ramp_s};
    struct text_buffer words = {NULL, 0, 0};
    text_add_format(&words, "block %zu of %zu, %s", number, of, block->configuration->file_name);
    const struct load_work work = {block->count, body_of, request_ended, block, words.data};
    struct load_line line = {.config = block->configuration->file_name, .round = round, .other_requests = -1};
    struct load_record *records = NULL;
    size_t count = 0;
    const struct server_counts before = server_counts_ask(block->endpoint);
    const struct client_time begin = client_time_now();
    int code = load_run(block->endpoint, &load, &work, &records, &count);
    const struct client_time end = client_time_now();
    if (!code) code = write_silent(block);
    for (size_t i = 0; i < count && code == EXIT_INTERRUPTED; i++) /* measured again, like requests of a ramp */
        if (records[i].end_ns < 0) records[i].is_ramp = records[i].has_failed = 1, records[i].end_ns = INT64_MAX;
    if (!code || code == EXIT_INTERRUPTED) {
        int64_t ours = 0;
        const double wall_ns = (double)(end.at_ns - begin.at_ns);
        for (size_t i = 0; i < count; i++) ours += !records[i].has_failed;
        load_summarize(records, count, &line);
        line.unix_s = (int64_t)time(NULL);
        line.client_cpu_percent = begin.cpu_ns < 0 ? (double)NAN : 100 * (double)(end.cpu_ns - begin.cpu_ns) / wall_ns;
        line.client_wait_percent =
            begin.wait_ns < 0 ? (double)NAN : 100 * (double)(end.wait_ns - begin.wait_ns) / wall_ns;
        line.other_requests = requests_of_others(before, server_counts_ask(block->endpoint), ours);
        const int written = write_load(sweep, &line, records, count);
        if (written) code = written;
        close_progress();
        warn_of_block(block->configuration, &line);
    }
    FREE_ALL(records, words.data);
    return code;
}

/* ---- the points of a block */
/* Makes the request of a sample, and writes the point as failed if there is none. Returns 0 or an exit code. */
static int add_sample(struct load_block *block, size_t index) {
    const struct dataset *set = block->configuration->set;
    struct sweep *sweep = block->sweep;
    struct open_point *point = &block->points[block->count];
    struct sample *sample = &block->samples[block->count];
    char reason[LINE_BYTES] = "";
    int has_vanished = 0, code;
    *point = block->states[index];
    point->configuration = block->configuration;
    if ((code = dataset_sample(set, NULL, index, sample)) != 0) return code;
    code = SERVER_BACKEND.begin(sweep, point, sample, &set->samples[index], reason, sizeof reason, &has_vanished);
    images_free(sweep->images, sample->images.count);
    sweep->images = NULL;
    served_keep(sweep);
    block->at[block->count++] = index;
    if (code || (!reason[0] && !block->configuration->dropped)) return code;
    code = write_failure(block, block->count - 1, reason[0] ? reason : block->configuration->dropped);
    served_release(point);
    sample_free(sample);
    block->count--;
    return code;
}
/* Measures a configuration in a round: its open points that have one run per earlier round. Returns 0 or an exit
 * code. */
static int measure_block(struct sweep *sweep, struct configuration *configuration, struct open_point *states,
                         struct launched_server *server, int64_t round, size_t number, size_t of) {
    const size_t most = configuration->set->count;
    struct load_block block = block_make(sweep, configuration, states, server);
    int code = 0;
    for (size_t i = 0; i < most && !code && !interrupted; i++)
        if (states[i].is_open && states[i].runs == round) {
            if (sweep->engine->session_at >= 0 || block.count)
                show_progress("block %zu of %zu: image %zu of %zu", number, of, i + 1, most);
            code = add_sample(&block, i);
        }
    if (!code && block.count && sweep->engine->session_at < 0) code = served_warm_up(sweep, &block.points[0]);
    while (!code && block.count && configuration->dropped) { /* it rejected the first request */
        code = write_failure(&block, block.count - 1, configuration->dropped);
        served_release(&block.points[--block.count]);
        sample_free(&block.samples[block.count]);
    }
    if (!code && block.count && !interrupted) code = run_block(&block, round, number, of);
    if (!code) code = sweep_block_end(sweep);
    block_free(&block);
    return code;
}
/* The points of a configuration, from the journal; the lines of new samples are written with the first one. */
static int read_states(struct sweep *sweep, const struct configuration *configuration, size_t set,
                       struct open_point *states) {
    const struct dataset *dataset = configuration->set;
    int code = 0;
    for (size_t i = 0; i < dataset->count && !code; i++) {
        const struct index_entry *entry =
            sweep->index.set_count ? index_find(&sweep->index.sets[set], 0, dataset->samples[i].id) : NULL;
        double totals[LINE_RUNS_MAX + 1];
        states[i].configuration = (struct configuration *)(size_t)configuration;
        states[i].totals = totals;
        code = point_resume(sweep, &states[i], entry);
        states[i].totals = NULL;
        if (code || entry || configuration != sweep->plan.configurations + set * sweep->plan.configuration_count
                                                   / sweep->plan.set_count)
            continue;
        struct sample sample;
        if ((code = dataset_sample(dataset, NULL, i, &sample)) == 0) code = sweep_write_sample(sweep, set, &sample);
        sample_free(&sample);
    }
    return code;
}
/* ---- rounds */
struct load_loop {
    struct sweep *sweep;
    struct open_point **states; size_t *order; /* [configurations of the plan] */
    struct launch_settings launch;
    struct launched_server server;
    size_t block, block_count; /* for the progress */
    int has_started; char **unstarted; /* has_started: a server was ready; unstarted: why others were not, by server */
};
static int is_of_server(const struct load_loop *loop, size_t configuration, size_t server) {
    return loop->sweep->plan.configurations[configuration].variant->server_at == server;
}
static int has_open(const struct load_loop *loop, size_t configuration, int64_t runs) {
    const struct open_point *states = loop->states[configuration];
    for (size_t i = 0; i < loop->sweep->plan.configurations[configuration].set->count; i++)
        if (states[i].is_open && states[i].runs < runs) return 1;
    return 0;
}
/* Starts the server with a combination of its knobs unless it runs, and waits for --ready. Returns as launch_server. */
static int make_ready(struct load_loop *loop, size_t server, char *reason, size_t capacity) {
    if (!loop->launch.ready) return 0;
    if (!loop->launch.command) return launch_wait(&loop->launch, NULL, reason, capacity);
    if (launch_is_alive(&loop->server)) return launch_wait(&loop->launch, &loop->server, reason, capacity);
    launch_end(&loop->server); /* it died */
    loop->sweep->engine->session_at = -1;
    return launch_server(&loop->launch, &loop->sweep->plan.variants.server_knobs, server, &loop->server, reason,
                         capacity);
}
/* Marks a configuration's remaining points as failed, because its server did not start. */
static int fail_points(struct load_loop *loop, size_t configuration, const char *reason) {
    struct sweep *sweep = loop->sweep;
    struct load_block block =
        block_make(sweep, &sweep->plan.configurations[configuration], loop->states[configuration], &loop->server);
    const size_t count = block.configuration->set->count;
    int code = 0;
    for (size_t i = 0; i < count && !code; i++)
        if (block.states[i].is_open && (code = add_sample(&block, i)) == 0 && block.count) {
            code = write_failure(&block, 0, reason);
            served_release(&block.points[--block.count]);
            sample_free(&block.samples[0]);
        }
    block_free(&block);
    return code;
}
/* Measures the configurations of a server until each has this many runs. */
static int run_rounds(struct load_loop *loop, size_t server, int64_t from, int64_t to) {
    struct sweep *sweep = loop->sweep;
    const size_t count = sweep->plan.configuration_count;
    int code = 0;
    for (int64_t round = from; round < to && !code && !interrupted; round++) {
        sweep_draw_order(sweep, loop->order, count, -1, round);
        for (size_t i = 0; i < count && !code && !interrupted; i++) {
            const size_t at = loop->order[i];
            char reason[LINE_BYTES];
            if (!is_of_server(loop, at, server)) continue;
            loop->block++;
            if (!has_open(loop, at, round + 1)) continue;
            code = make_ready(loop, server, reason, sizeof reason);
            loop->has_started |= !code;
            if (sweep->server_group != loop->server.pid) {
                sweep->server_group = loop->server.pid;
                sweep_block_begin(sweep);
            }
            if (code == EXIT_DEVICE) {
                complain(0, "%s: %s", sweep->plan.configurations[at].file_name, reason);
                if (!loop->has_started) { /* if none ever starts, no point has failed */
                    free(loop->unstarted[server]);
                    loop->unstarted[server] = copy_text(reason, strlen(reason));
                    return 0;
                }
                code = fail_points(loop, at, reason);
            } else if (!code) {
                code = measure_block(sweep, &sweep->plan.configurations[at], loop->states[at], &loop->server, round,
                                     loop->block, loop->block_count);
                if (loop->server.log && !launch_is_alive(&loop->server)) {
                    launch_exit_text(&loop->server, "", reason, sizeof reason);
                    complain(0, "%s: %s", sweep->plan.configurations[at].file_name, reason);
                }
            }
        }
    }
    return code;
}
/* Marks the points of servers that did not start before another one did. Returns 0 or an exit code. */
static int fail_unstarted(struct load_loop *loop, size_t server) {
    const size_t count = loop->sweep->plan.configuration_count;
    int code = 0;
    if (!loop->has_started)
        return complain(EXIT_DEVICE, "no server was ready, so nothing was measured: try the command in a shell, then "
                                     "correct --server or --ready, and run the sweep again");
    for (size_t i = 0; i < count && !code; i++)
        if (is_of_server(loop, i, server)) code = fail_points(loop, i, loop->unstarted[server]);
    return code;
}
int served_load_loop(struct sweep *sweep) {
    const size_t count = sweep->plan.configuration_count;
    const size_t servers = knobs_combinations(&sweep->plan.variants.server_knobs);
    const int64_t runs = sweep->rule.min_runs;
    struct load_loop loop = {.sweep = sweep, .states = (struct open_point **)zeroed(count, sizeof *loop.states),
                             .order = zeroed(count, sizeof *loop.order),
                             .has_started = (int64_t)sweep->done > sweep->failed,
                             .unstarted = (char **)zeroed(servers, sizeof *loop.unstarted),
                             .block_count = count * (size_t)runs, .launch = sweep->plan.settings.servers.launch};
    struct text_buffer ready = {NULL, 0, 0};
    int code = 0;
    if (loop.launch.command && !loop.launch.ready) {
        text_add_format(&ready, "%s/v1/models", served_endpoint(sweep, sweep->plan.configurations)->url);
        loop.launch.ready = sweep->plan.settings.servers.launch.ready = ready.data;
    }
    const int64_t rounds = !loop.launch.command ? 1 : loop.launch.rounds < runs ? loop.launch.rounds : runs;
    if (loop.launch.command && servers > 1 && rounds < loop.launch.rounds)
        complain(0, "--server_rounds %d: only %lld, because --num_runs_per_sample is %lld", loop.launch.rounds,
                 (long long)rounds, (long long)runs);
    for (size_t i = 0; i < count && !code; i++) {
        const struct dataset *set = sweep->plan.configurations[i].set;
        loop.states[i] = zeroed(set->count, sizeof **loop.states);
        code = read_states(sweep, &sweep->plan.configurations[i], (size_t)(set - sweep->plan.sets), loop.states[i]);
    }
    for (int64_t round = 0; round < rounds && (loop.has_started || !round) && !code && !interrupted; round++)
        for (size_t i = 0; i < servers && !code && !interrupted; i++) {
            code = run_rounds(&loop, round % 2 ? servers - 1 - i : i, (runs * round + rounds - 1) / rounds,
                              (runs * (round + 1) + rounds - 1) / rounds);
            launch_end(&loop.server);
        }
    for (size_t i = 0; i < servers && !code && !interrupted; i++)
        if (loop.unstarted[i]) code = fail_unstarted(&loop, i);
    if (ready.data) sweep->plan.settings.servers.launch.ready = NULL;
    for (size_t i = 0; i < count; i++) free(loop.states[i]);
    for (size_t i = 0; i < servers; i++) free(loop.unstarted[i]);
    FREE_ALL((void *)loop.states, loop.order, (void *)loop.unstarted, ready.data);
    return code;
}
