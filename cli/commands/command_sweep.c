/* command_sweep.c: the sweep: a grid of knobs over a data set, alone or as one of several processes. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "dataset/forecast.h"
#include "dataset/plan.h"
#include "request/model.h"
#include "request/request.h"
#include "score/score_rules.h"
#include "sweep/journal.h"
#include "sweep/profile.h"
#include "sweep/ranks.h"
#include "sweep/result_write.h"
#include "sweep/sweep_point.h"
#include "vlmprof.h"
#include "vlmprof_engine.h"
#include "vlmprof_score.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const option_spec SWEEP_OPTIONS[] = {
    OPTION_MODEL,
    OPTION_SYNTHETIC,
    {"prompt", TEXT, "TEXT", NULL, 0, 0, NULL, "the question for each image of a folder (short: -p)"},
    {"style", TEXT, "S", NULL, 0, 0, NULL, "prompt style of records without one (default: the data set's)"},
    {"data", TEXTS, "FILE...", NULL, 0, 0, NULL,
     "JSONL (id, image, question, answers, options, style, dataset a line), VQA v2's question file, or a folder of images with -p"},
    {"annotations", TEXT, "FILE", NULL, 0, 0, NULL,
     "VQA v2's answers (default: the file of the official name beside the questions)"},
    {"image_dir", TEXT, "DIR", NULL, 0, 0, NULL,
     "where relative image names start; for VQA v2 it or its val2014 holds COCO_val2014_*.jpg"},
    {"stratify_by", TEXT, "FIELD", NULL, 0, 0, NULL, "draw samples so that this field's values keep their shares"},
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL, "folder for the result files and the journal"},
    {"dataset_name", TEXT, "NAME", NULL, 0, 0, NULL,
     "task in the file names (default: the data file's stem); a known one (text_vqa ...) sets style, metric, max_new_tokens"},
    {"metric", TEXT, "M", NULL, 0, 0, NULL,
     "scoring rule of the accuracy (default: the data set's; vqa_seed for an unknown one)"},
    {"tier_list", TEXTS, "T...", NULL, 0, 0, NULL, "tiers of the grid (default, without --vision_tokens_list: all)"},
    {"vision_tokens_list", COUNTS, "N...", NULL, 1, 1000000, NULL,
     "target vision tokens of the grid, instead of tiers"},
    {"top_k_list", COUNTS, "K...", NULL, 1, 1000000, NULL, "experts a token uses (default: as trained)"},
    {"num_active_blocks_list", COUNTS, "N...", NULL, 1, 1000000, NULL, "decoder blocks that run (default: all)"},
    OPTION_IMPORTANCE_SCORES_FILE,
    {"num_samples", COUNT, "N", "1000", 1, INT32_MAX, NULL,
     "samples drawn from each data file, the same for all configurations"},
    {"num_runs_per_sample", COUNT, "R", "3", 1, 10000, NULL,
     "timed runs of every point; with --stop_half_width the least number"},
    {"stop_half_width", REAL, "PERCENT", "0", 0, 100, NULL,
     "run a point until the 95 % interval of its P50 of T_total is within +-PERCENT; 0: --num_runs_per_sample runs"},
    {"max_runs", COUNT, "N", "100", 1, 10000, NULL, "with --stop_half_width: most runs of a point"},
    {"time_box_s", REAL, "S", "0", 0, 1000000, NULL,
     "with --stop_half_width: most seconds of runs of a point; 0: no limit"},
    {"timing", CHOICE, "MODE", "stage", 0, 0, "stage off",
     "stage: times of all stages; off: of the whole request only"},
    {"bare_every", COUNT, "N", "8", 0, 1000000, NULL,
     "every N-th point is run twice more, without and with stage times: what the tool itself costs; 0: never"},
    {"kernel_pass", FLAG, NULL, NULL, 0, 0, NULL,
     "one more run per shape and configuration with every kernel timed: the device's idle share"},
    {"max_retries", COUNT, "N", "2", 0, 100, NULL,
     "runs tried again after an error of the device, before the point fails"},
    {"retry_failed", FLAG, NULL, NULL, 0, 0, NULL, "measure points again that failed before"},
    {"sampling_strategy", CHOICE, "NAME", "full", 0, 0, "full balanced stratified boundary custom_sparse lhs seed_lhs",
     "points of the grid: full, balanced, stratified, boundary, custom_sparse, lhs (Latin hypercube), seed_lhs"},
    {"max_new_tokens", COUNT, "N", NULL, 1, 1000000, NULL,
     "most tokens of an answer (default: the data set's, else 16)"},
    OPTION_IGNORE_EOS,
    OPTION_WEIGHTS,
    OPTION_SEED,
    OPTION_DEVICE,
    OPTION_THREADS,
    OPTION_GEMM,
    {"use_profiler", FLAG, NULL, NULL, 0, 0, NULL,
     "the first sample of each configuration once more, operation by operation: profiler_results_config_<i>_sample_<j>.txt"},
    {"use_profiler_on_all_samples", FLAG, NULL, NULL, 0, 0, NULL, "with --use_profiler: every sample"},
    OPTION_SORT_BY,
    OPTION_ROW_LIMIT,
    OPTION_GROUP_BY,
    OPTION_GROUP_BY_INPUT_SHAPE,
    OPTION_GROUP_BY_STACK_N,
    OPTION_RECORD_SHAPES,
    OPTION_PROFILE_MEMORY,
    OPTION_WITH_STACK,
    {"trace", FLAG, NULL, NULL, 0, 0, NULL, "with --use_profiler: a Chrome trace of each in profiler_traces"},
    OPTION_TRACE_MAX_BYTES,
    {"plan", FLAG, NULL, NULL, 0, 0, NULL,
     "print the grid, its memory and expected time, and what the samples can tell apart; nothing is measured or written"},
    OPTION_JSON_OF_FILES,
    OPTION_QUIET,
    OPTION_HELP,
};

static int are_files_there(const sweep *x) {
    int there = 1;
    for (size_t i = 0; i < x->p.cell_count; i++) {
        char *path = join_path(text_of(x->o, "output_dir"), x->p.cells[i].file_name);
        there &= access(path, F_OK) == 0;
        free(path);
    }
    return there;
}
/* After the last point: the files of a sweep; of several processes the one that finds all others finished writes them, once. */
static int sweep_merge(sweep *x) {
    const char *folder = text_of(x->o, "output_dir");
    char state[96], before[96] = "", text[400];
    int code, fd = ranks_lock(folder);
    book all;
    if (fd < 0) return EXIT_OUTPUT;
    memset(&all, 0, sizeof all);
    if (read(fd, before, sizeof before - 1) < 0) before[0] = 0;
    code = ranks_read_folder(&all, folder, &x->j);
    if (!code) ranks_state(&all, state, sizeof state);
    if (!code && ranks_missing(&all, text, sizeof text)) {
        if (!given(x->o, "quiet"))
            fprintf(stderr, "vlmprof: rank %d of %d is done; the last one writes the result files; not finished: %s%s\n", x->rank.rank,
                    x->rank.world_size, text, strstr(text, "(stopped)") || strstr(text, "(no journal)")
                    ? "; the part of a dead rank R can be run alone: RANK=R, the same WORLD_SIZE and the same command" : "");
    } else if (!code && (x->rank.world_size == 1 || strcmp(before, state) || !are_files_there(x))) {
        code = ranks_merge(&all, folder, 0, &x->results);
        x->has_merged = !code;
        if (!code && (pwrite(fd, state, strlen(state), 0) != (ssize_t)strlen(state) || ftruncate(fd, (off_t)strlen(state)) || fsync(fd)))
            code = complain(EXIT_OUTPUT, "%s/.vlmprof-merge cannot be written: %s", folder, strerror(errno));
    }
    book_free(&all);
    close(fd);
    return code;
}
static int print_summary(const sweep *x, int code) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, file_sink, stdout, 1);
    vp_json_begin_object(&w);
    put_text(&w, "output_dir", text_of(x->o, "output_dir"));
    put_text(&w, "status", code ? "complete with failures" : "complete");
    put_text(&w, "journal", x->j.path);
    put_int(&w, "rank", x->rank.rank);
    put_int(&w, "world_size", x->rank.world_size);
    put_bool(&w, "merged", x->has_merged);
    put_int(&w, "points", (int64_t)x->point_count);
    put_int(&w, "measured_now", (int64_t)(x->done - x->done_before));
    put_int(&w, "runs_now", x->runs_now);
    put_int(&w, "failed", x->failed);
    put_bool(&w, "synthetic", x->m.synthetic);
    summaries_put(&w, &x->results);
    vp_json_end_object(&w);
    if (vp_json_finish(&w) != VP_OK) return complain(EXIT_OUTPUT, "stdout cannot be written");
    putchar('\n');
    return code;
}
static int sweep_report(const sweep *x) {
    int quiet = given(x->o, "quiet"), code = x->failed ? EXIT_WORK : 0;
    char rank[64] = "";
    if (interrupted) {
        sweep_message(x, "interrupted");
        return EXIT_INTERRUPTED;
    }
    if (x->rank.world_size > 1) snprintf(rank, sizeof rank, "rank %d of %d: ", x->rank.rank, x->rank.world_size);
    if (!quiet && x->results.count && (!code || isatty(STDERR_FILENO))) summaries_print(&x->results); /* a failing command says little */
    if (!quiet)
        fprintf(stderr, "vlmprof: %s%zu configurations, %zu points (%zu measured now, %lld failed) in %s%s\n", rank, x->p.cell_count, x->point_count,
                x->done - x->done_before, (long long)x->failed, text_of(x->o, "output_dir"),
                x->m.synthetic ? "; synthetic weights: latency is real, accuracy is not" : "");
    if (x->p.repeats && !quiet)
        fprintf(stderr, "vlmprof: %s repeats points %zu times; each was measured once\n", text_of(x->o, "sampling_strategy"), x->p.repeats);
    if (x->failed)
        fprintf(stderr, "vlmprof: failed points are rows with status \"failed\" and a reason in the result files; --retry_failed measures them "
                "again\n");
    return given(x->o, "json") ? print_summary(x, code) : code;
}
/* Which part of the sweep this process has, and on which device. */
static int sweep_rank(sweep *x) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = vp_rank_from_environment(environment, NULL, &x->rank, &error);
    const char *device = text_of(x->o, "device");
    int32_t visible = 0, index;
    if (r != VP_OK) return complain_result(EXIT_USAGE, "environment", r, &error);
    snprintf(x->device, sizeof x->device, "%s", device);
    if (x->rank.world_size < 2 || (strcmp(device, "auto") && strcmp(device, "cuda")) || vp_device_count(&visible, NULL) != VP_OK) return 0;
    index = vp_rank_device(&x->rank, visible);
    if (index < 0 && x->rank.local_rank < 0) index = x->rank.rank % visible; /* run alone, by RANK and WORLD_SIZE only */
    snprintf(x->device, sizeof x->device, "cuda:%d", index);
    return 0;
}
/* Journals of another number of processes hold samples that this process would measure again. */
static int check_folder(const sweep *x, const char *folder) {
    DIR *d = opendir(folder);
    int64_t rank, world_size;
    int code = 0;
    for (struct dirent *e; d && !code && (e = readdir(d)) != NULL;)
        if (parse_journal_name(e->d_name, &rank, &world_size) && world_size != x->rank.world_size)
            code = complain(EXIT_USAGE, "%s/%s is of a sweep with %lld processes, this one has %d: go on with as many, or use another "
                            "--output_dir", folder, e->d_name, (long long)world_size, x->rank.world_size);
    if (d) closedir(d);
    return code;
}
static int sweep_rules(sweep *x) {
    const options *o = x->o;
    x->rule.min_runs = number_of(o, "num_runs_per_sample");
    x->rule.half_width = opt(o, "stop_half_width")->real / 100;
    x->rule.confidence = 0.95;
    x->rule.box_ns = (int64_t)(opt(o, "time_box_s")->real * 1e9);
    x->rule.max_runs = x->rule.half_width > 0 ? number_of(o, "max_runs") : x->rule.min_runs;
    x->max_retries = (int32_t)number_of(o, "max_retries");
    x->bare_every = (int32_t)number_of(o, "bare_every");
    x->timing_off = !strcmp(text_of(o, "timing"), "off");
    x->kernel_pass = given(o, "kernel_pass") && !x->timing_off;
    if (!(x->rule.half_width > 0) && (given(o, "max_runs") || given(o, "time_box_s")))
        return complain(EXIT_USAGE, "--max_runs and --time_box_s go with --stop_half_width: without it every point has --num_runs_per_sample runs");
    if (given(o, "max_runs") && x->rule.max_runs < x->rule.min_runs)
        return complain(EXIT_USAGE, "--max_runs %lld is less than --num_runs_per_sample %lld", (long long)x->rule.max_runs,
                        (long long)x->rule.min_runs);
    if (x->rule.max_runs < x->rule.min_runs) x->rule.max_runs = x->rule.min_runs;
    return 0;
}
static int check_sweep_options(const options *o) {
    vp_score_metric metric;
    if (!given(o, "data")) return complain(EXIT_USAGE, "sweep needs --data FILE.jsonl (or VQA v2's question file, or a folder of images)");
    if (!given(o, "output_dir") && !given(o, "plan")) return complain(EXIT_USAGE, "sweep needs --output_dir DIR");
    if (text_of(o, "metric") && vp_score_metric_find(text_of(o, "metric"), &metric) != VP_OK)
        return unknown_metric(text_of(o, "metric"), METRICS_OF_ROWS);
    if (text_of(o, "dataset_name") && (!text_of(o, "dataset_name")[0] || strchr(text_of(o, "dataset_name"), '/')))
        return complain(EXIT_USAGE, "--dataset_name becomes part of file names: it must not be empty or hold a slash");
    if (text_of(o, "dataset_name") && opt(o, "data")->count > 1)
        return complain(EXIT_USAGE, "--dataset_name names one --data file; several are named after their stems");
    if (text_of(o, "annotations") && opt(o, "data")->count > 1)
        return complain(EXIT_USAGE, "--annotations goes with one --data file; several find theirs by their official names");
    return 0;
}
/* The journal, what it holds already, and this process' share of the points. */
static int sweep_open(sweep *x) {
    const char *folder = text_of(x->o, "output_dir");
    char *status;
    int code;
    snprintf(x->b.plan, sizeof x->b.plan, "%016llx", (unsigned long long)x->p.fingerprint);
    x->j.path = journal_name(folder, x->rank.rank, x->rank.world_size);
    if ((code = make_folder(folder)) != 0 || (code = check_folder(x, folder)) != 0 || (code = journal_open(&x->j, &x->b)) != 0) return code;
    for (size_t i = 0; i < x->p.cell_count && !code; i++) {
        cell *c = &x->p.cells[i];
        size_t first = 0, stride = 1, count = 0;
        c->in_book = book_cell_named(&x->b, c->file_name);
        vp_sampler_shard(c->set->count, x->rank.rank, x->rank.world_size, &first, &stride, &count);
        x->point_count += count;
        if (c->in_book >= 0) {
            const book_cell *known = &x->b.cells[c->in_book];
            x->done += (size_t)(given(x->o, "retry_failed") ? known->closed - known->failed : known->closed);
            x->failed += given(x->o, "retry_failed") ? 0 : known->failed;
        }
        if ((code = result_check(folder, c->file_name, x->b.plan, &status)) == 0 && status && !x->j.end && strcmp(status, "partial")
            && x->rank.world_size == 1)
            code = complain(EXIT_USAGE, "%s/%s is there but %s is not: its points would be measured again; use another --output_dir, or delete "
                            "it", folder, c->file_name, x->j.path);
        free(status);
    }
    x->done_before = x->done;
    return !code && !is_same_grid(x) ? write_head(x) : code;
}
static int sweep_plan(sweep *x) {
    const options *o = x->o;
    int code;
    if ((code = check_sweep_options(o)) != 0 || (code = profile_check_sweep(o)) != 0) return code;
    if ((code = sweep_rules(x)) != 0 || (code = sweep_rank(x)) != 0) return code;
    if ((code = check_device(o)) != 0 || (code = check_gemm(o)) != 0 || (code = model_load(o, &x->m)) != 0) return code;
    return plan_make(o, &x->m, &x->p);
}
static int sweep_prepare(sweep *x) {
    int code = sweep_open(x);
    if (code) return code;
    x->run = timings_make(1, x->p.new_tokens);
    x->open = zeroed(x->p.cell_count, sizeof *x->open);
    for (size_t i = 0; i < x->p.cell_count; i++) {
        x->open[i].totals = zeroed((size_t)x->rule.max_runs + 1, sizeof *x->open[i].totals);
        x->open[i].scratch = zeroed((size_t)x->rule.max_runs + 1, sizeof *x->open[i].scratch);
    }
    for (size_t i = 0; i < x->b.shape_count && x->kernel_pass; i++) { /* shapes that were timed kernel by kernel */
        const book_shape *s = &x->b.shapes[i];
        for (size_t k = 0; k < x->p.cell_count; k++) {
            cell *c = &x->p.cells[k];
            if (c->in_book != s->cell) continue;
            c->shapes = resize(c->shapes, c->shape_count + 1, sizeof *c->shapes);
            c->shapes[c->shape_count].views = (int32_t)s->views;
            c->shapes[c->shape_count++].sequence = (int32_t)(s->sequence / 256);
        }
    }
    x->s.m = &x->m;
    x->session_at = -1;
    return 0;
}
static void sweep_free(sweep *x) {
    timings_free(x->run, 1);
    for (size_t i = 0; x->open && i < x->p.cell_count; i++) { free(x->open[i].totals); free(x->open[i].scratch); }
    free(x->open);
    session_free(&x->s);
    book_free(&x->b);
    journal_close(&x->j);
    plan_free(&x->p);
    model_free(&x->m);
    summaries_free(&x->results);
    free(x->scratch.nodes);
    free(x->warm);
    free(x->held.data);
}
static int run_command(const options *o) {
    sweep x;
    int code;
    memset(&x, 0, sizeof x);
    x.o = o;
    x.j.fd = -1;
    end_in_order();
    code = sweep_plan(&x);
    if (!code && given(o, "plan")) code = forecast_show(o, &x.m, &x.p);
    else if (!code) {
        code = sweep_prepare(&x);
        if (!code && !interrupted) code = sweep_loop(&x);
        if (!code && !interrupted) code = sweep_merge(&x);
        if (!code || code == EXIT_INTERRUPTED) code = sweep_report(&x);
    }
    sweep_free(&x);
    return code;
}

const command command_sweep = {
    "sweep", "(--model DIR | --synthetic NAME) --data FILE... --output_dir DIR",
    "measure and score a grid of knobs over a data set; resumes when run again",
    "vlmprof sweep --synthetic tiny --data samples/questions.jsonl --output_dir results --tier_list low medium --top_k_list 1 2 --num_samples 5\n"
    "  vlmprof sweep --model checkpoint --data v2_OpenEnded_mscoco_val2014_questions.json --image_dir coco --dataset_name coco_2014_vqa \\\n"
    "    --stratify_by answer_type --output_dir results\n"
    "  vlmprof sweep --synthetic tiny --data samples/questions.jsonl --top_k_list 1 2 --plan",
    0, SWEEP_OPTIONS, sizeof SWEEP_OPTIONS / sizeof *SWEEP_OPTIONS, NULL, run_command};
