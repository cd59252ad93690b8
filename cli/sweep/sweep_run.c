/* sweep_run.c: a planned sweep from its journal to its result files. The journal lists what is already measured
 * (sweep_open); sweep/sweep_point.c measures the rest; then the result files are made from all journals
 * (sweep_merge). */
#include "sweep/sweep.h"

#include "base/console.h"
#include "base/files.h"
#include "data/choice.h"
#include "measure/provenance.h"
#include "sweep/ranks.h"
#include "vlmprof_file.h"

#include <errno.h>
#include <unistd.h>

/* ---- the journal */
/* Complains if the folder has journals of a sweep with another number of processes: its samples would be measured
 * again. Returns 0 or an exit code. */
static int check_folder(const struct sweep *sweep, const char *folder) {
    struct text_list names = {NULL, 0};
    int64_t rank, world_size;
    int code = names_of_folder(folder, &names);
    for (size_t i = 0; i < names.count && !code; i++)
        if (can_parse_journal_name(names.items[i], &rank, &world_size) && world_size != sweep->rank.world_size)
            code = complain(
                EXIT_USAGE,
                "%s/%s belongs to a sweep with %lld processes, but this one has %d: continue with that many, or use "
                "another --output_dir",
                folder, names.items[i], (long long)world_size, sweep->rank.world_size);
    text_list_free(&names);
    return code;
}
/* Complains about an existing file with a result's name that no journal explains: a complete result, whose points would
 * be measured again, or a file that is not a result of a sweep. Returns 0 or an exit code. */
static int check_result(const struct sweep *sweep, const char *folder, const char *file_name) {
    const int is_first = !sweep->journal.end && sweep->rank.world_size == 1;
    struct result_found found;
    int code = result_check(folder, file_name, &sweep->index, &found);
    if (!code && is_first && found.status && strcmp(found.status, "partial"))
        code = complain(
            EXIT_USAGE,
            "%s/%s exists but %s does not: its points would be measured again; use another --output_dir, or delete it",
            folder, file_name, sweep->journal.path);
    if (!code && is_first && found.is_there && !found.status)
        code = complain(EXIT_USAGE,
                        "%s/%s exists and is not a result file of a sweep: use another --output_dir, or move it away",
                        folder, file_name);
    free(found.status);
    return code;
}
/* Counts this process's points of a configuration, and how many of them are already in the journal. */
static void count_points(struct sweep *sweep, struct configuration *configuration) {
    const int retries = sweep->settings.retry_failed;
    size_t first = 0, stride = 1, count = 0;
    configuration->in_index = index_configuration_named(&sweep->index, configuration->file_name);
    shard_of(configuration->set->count, sweep->rank.rank, sweep->rank.world_size, &first, &stride, &count);
    sweep->point_count += count;
    configuration->open_count = count;
    if (configuration->in_index >= 0) {
        const struct index_configuration *known = &sweep->index.configurations[configuration->in_index];
        const size_t done = (size_t)(retries ? known->closed - known->failed : known->closed);
        sweep->done += done;
        configuration->open_count = done < count ? count - done : 0;
        sweep->failed += retries ? 0 : known->failed;
    }
}
/* Gives the planned configurations the names that the journals of an index use for them. The names of the same point
 * of the grid can differ: a tier's name contains the mean of the crops, which changes when an unreadable image becomes
 * readable again. */
static void adopt_names(struct sweep *sweep, const struct journal_index *index) {
    for (size_t i = 0; i < sweep->plan.configuration_count; i++) {
        struct configuration *planned = &sweep->plan.configurations[i];
        if (index_configuration_named(index, planned->file_name) >= 0) continue;
        for (int32_t k = 0; k < index->configuration_count; k++) {
            const struct index_configuration *known = &index->configurations[k];
            if (known->set != planned->set - sweep->plan.sets) continue;
            if (!knob_values_are_same(&planned->knobs, &known->knobs)) continue;
            free(planned->file_name);
            planned->file_name = copy_text(known->file_name, strlen(known->file_name));
            break;
        }
    }
}
/* Takes the names from this process's journal. A new process takes them from the other journals, because all must
 * agree. Returns 0 or an exit code. */
static int settle_names(struct sweep *sweep, const char *folder) {
    struct journal_index others = {0};
    int code;
    if (sweep->journal.end || sweep->rank.world_size < 2) {
        adopt_names(sweep, &sweep->index);
        return 0;
    }
    snprintf(others.plan, sizeof others.plan, "%s", sweep->index.plan);
    if ((code = ranks_read_folder(&others, folder, &sweep->journal)) == 0) adopt_names(sweep, &others);
    index_free(&others);
    return code;
}
/* Opens the journal and counts the points. Returns 0 or an exit code. */
static int sweep_open(struct sweep *sweep) {
    const char *folder = sweep->settings.output_dir;
    int code;
    snprintf(sweep->index.plan, sizeof sweep->index.plan, "%016llx", (unsigned long long)sweep->plan.fingerprint);
    sweep->index.options = options_json(sweep->options);
    sweep->journal.path = journal_name(folder, sweep->rank.rank, sweep->rank.world_size);
    if ((code = make_folder(folder)) != 0) return code;
    vp_output_clean(folder);
    if ((code = check_folder(sweep, folder)) != 0 || (code = journal_open(&sweep->journal, &sweep->index)) != 0)
        return code;
    code = settle_names(sweep, folder);
    for (size_t i = 0; i < sweep->plan.configuration_count && !code; i++) {
        count_points(sweep, &sweep->plan.configurations[i]);
        code = check_result(sweep, folder, sweep->plan.configurations[i].file_name);
    }
    for (size_t i = 0; i < sweep->plan.run_count && sweep->plan.choices; i++) {
        const struct configuration *of = sweep->plan.configurations + !sweep->plan.runs[i].grid_name;
        sweep->plan.runs[i].in_index = of->in_index;
        sweep->plan.runs[i].open_count = of->open_count;
    }
    sweep->done_before = sweep->done;
    if (!code && sweep->done)
        print_note("vlmprof: %zu of %zu points are already measured%s\n", sweep->done, sweep->point_count,
                   sweep->done < sweep->point_count ? ": resuming"
                                                    : "; for new measurements, use another --output_dir");
    return !code && !is_same_grid(sweep) ? write_head(sweep) : code;
}

/* ---- the measurements */
static void make_engines(struct sweep *sweep) {
    sweep->engine_count = sweep->plan.weights_count ? sweep->plan.weights_count : 1;
    sweep->engines = zeroed(sweep->engine_count, sizeof *sweep->engines);
    for (size_t i = 0; i < sweep->engine_count; i++) {
        sweep->engines[i].weights = sweep->plan.weights_count ? sweep->plan.weights[i] : NULL;
        sweep->engines[i].settings = sweep->settings.engine;
        sweep->engines[i].settings.device = sweep->device;
        if (sweep->engines[i].weights) sweep->engines[i].settings.weights = weights_of(sweep->engines[i].weights);
        sweep->engines[i].session.model = &sweep->model;
        sweep->engines[i].session_at = -1;
    }
    sweep->engine = sweep->engines;
}
/* Opens the journal and allocates the measurements. Returns 0 or an exit code. */
static int sweep_prepare(struct sweep *sweep) {
    make_engines(sweep);
    sweep->backend = sweep->plan.variants.count ? &SERVER_BACKEND : &ENGINE_BACKEND;
    int code = sweep->plan.variants.count ? served_open(sweep) : 0;
    if (!code) code = sweep_open(sweep);
    if (code) return code;
    sweep->run = runs_make(1, sweep->plan.new_tokens);
    sweep->open = zeroed(sweep->plan.configuration_count, sizeof *sweep->open);
    for (size_t i = 0; i < sweep->plan.configuration_count; i++) {
        sweep->open[i].totals = zeroed((size_t)sweep->rule.max_runs + 1, sizeof *sweep->open[i].totals);
        sweep->open[i].scratch = zeroed((size_t)sweep->rule.max_runs + 1, sizeof *sweep->open[i].scratch);
    }
    /* the journal lists the shapes whose kernels were already timed */
    for (size_t i = 0; i < sweep->index.shape_count && sweep->kernel_pass; i++) {
        const struct index_shape *shape = &sweep->index.shapes[i];
        for (size_t k = 0; k < sweep->plan.configuration_count; k++) {
            struct configuration *configuration = &sweep->plan.configurations[k];
            if (configuration->in_index != shape->configuration) continue;
            *ADDED(configuration->shapes, configuration->shape_count) =
                (struct shape){.views = (int32_t)shape->views, .sequence = (int32_t)(shape->sequence / 256)};
        }
    }
    return 0;
}

/* ---- the result files */
/* Returns 1 if all result files of the plan exist and start as they should. */
static int are_files_there(const struct sweep *sweep) {
    int there = 1;
    for (size_t i = 0; i < sweep->plan.configuration_count && there; i++) {
        struct result_found found;
        there = result_check(sweep->settings.output_dir, sweep->plan.configurations[i].file_name,
                             &sweep->index, &found) == 0
                && found.status;
        free(found.status);
    }
    return there;
}
/* Writes the result files after the last point. With several processes, the last one to finish writes them, and only if
 * the journals have changed since the last merge. Returns 0 or an exit code. */
static int sweep_merge(struct sweep *sweep) {
    const char *folder = sweep->settings.output_dir;
    char state[96], before[96] = "", text[400];
    int code, fd = ranks_lock(folder);
    struct journal_index all = {0};
    if (fd < 0) return EXIT_OUTPUT;
    if (read(fd, before, sizeof before - 1) < 0) before[0] = 0;
    code = ranks_read_folder(&all, folder, &sweep->journal);
    if (!code) ranks_state(&all, state, sizeof state);
    if (!code && ranks_missing(&all, text, sizeof text)) {
        print_note("vlmprof: rank %d of %d is done; the last one to finish writes the result files; not finished: "
                   "%s%s\n",
                   sweep->rank.rank, sweep->rank.world_size, text,
                   strstr(text, "(stopped)") || strstr(text, "(no journal)")
                       ? "; to run the part of a dead rank R: RANK=R, the same WORLD_SIZE and the same command"
                       : "");
    } else if (!code && (sweep->rank.world_size == 1 || strcmp(before, state) || !are_files_there(sweep))) {
        code = ranks_merge(&all, folder, 0, &sweep->results);
        sweep->has_merged = !code;
        if (!code
            && (pwrite(fd, state, strlen(state), 0) != (ssize_t)strlen(state) || ftruncate(fd, (off_t)strlen(state))
                || fsync(fd)))
            code = complain(EXIT_OUTPUT, "%s/.vlmprof-merge cannot be written: %s", folder, strerror(errno));
    }
    index_free(&all);
    close(fd);
    return code;
}
int sweep_run(struct sweep *sweep) {
    int code = sweep_prepare(sweep);
    if (!code) end_in_order(); /* before and after the measurements, a signal ends the process at once */
    if (!code) code = sweep_loop(sweep);
    end_at_once();
    return !code && !interrupted ? sweep_merge(sweep) : code;
}
void sweep_free(struct sweep *sweep) {
    runs_free(sweep->run, 1);
    for (size_t i = 0; sweep->open && i < sweep->plan.configuration_count; i++) {
        FREE_ALL(sweep->open[i].totals, sweep->open[i].scratch, sweep->open[i].ids);
    }
    free(sweep->open);
    for (size_t i = 0; i < sweep->engine_count; i++) {
        session_free(&sweep->engines[i].session);
        free(sweep->engines[i].warm);
    }
    free(sweep->engines);
    served_close(sweep);
    baseline_close(&sweep->baseline);
    index_free(&sweep->index);
    journal_close(&sweep->journal);
    plan_free(&sweep->plan);
    model_free(&sweep->model);
    summaries_free(&sweep->results);
    FREE_ALL(sweep->scratch.nodes, sweep->pending.data);
}
