/* sweep_point.c: measures the points of a sweep and writes each one to the journal. */
#include "sweep/sweep_point.h"

#include "base/console.h"
#include "dataset/dataset.h"
#include "request/input.h"
#include "request/provenance.h"
#include "request/record.h"
#include "sweep/profile.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"
#include "vlmprof_score.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FAILURES_IN_A_ROW = 8 }; /* then something is wrong with the machine, not with the points */

int sweep_message(const sweep *x, const char *what) {
    close_progress();
    return fprintf(stderr, "vlmprof: %s: %zu of %zu points are in %s; run the same command again to go on\n", what, x->done, x->point_count,
                   x->j.path) < 0;
}

/* ---- lines */
int is_same_grid(const sweep *x) {
    size_t wanted = 0;
    for (int32_t i = 0; i < x->b.cell_count; i++) wanted += (size_t)x->b.cells[i].is_wanted;
    for (size_t i = 0; i < x->p.cell_count; i++) if (x->p.cells[i].in_book < 0 || !x->b.cells[x->p.cells[i].in_book].is_wanted) return 0;
    return wanted == x->p.cell_count;
}
static void put_head_cell(vp_json_writer *w, const sweep *x, const cell *c) {
    int32_t crops = 0;
    vp_json_begin_object(w);
    put_text(w, "file_name", c->file_name);
    put_int(w, "set", (int64_t)(c->set - x->p.sets));
    put_text(w, "tier", c->tier ? c->tier->name : NULL);
    vp_json_key(w, "target_vision_tokens");
    if (c->tier) vp_json_null(w); else vp_json_int(w, c->vision_tokens);
    vp_json_key(w, "max_crops");
    if (c->tier) vp_json_int(w, c->tier->max_crops);
    else if (vp_select_crops(&x->m.config.geometry, c->vision_tokens, &crops) == VP_OK) vp_json_int(w, crops);
    else vp_json_null(w);
    put_int(w, "top_k", c->top_k);
    put_int(w, "num_active_blocks", c->block_count);
    put_ints(w, "active_block_indices", c->blocks, c->block_count);
    vp_json_end_object(w);
}
int write_head(sweep *x) {
    vp_json_writer *w = journal_line_begin(&x->j);
    char hash[24];
    put_text(w, "schema", "vlmprof-journal-2");
    put_text(w, "plan", x->b.plan);
    put_int(w, "rank", x->rank.rank);
    put_int(w, "world_size", x->rank.world_size);
    put_text(w, "model", x->m.name);
    put_bool(w, "synthetic", x->m.synthetic);
    put_text(w, "timing", text_of(x->o, "timing"));
    put_bool(w, "ignore_eos", x->p.ignore_eos);
    put_int(w, "num_runs_per_sample", x->p.run_count);
    put_int(w, "num_total_blocks", x->m.config.block_count);
    put_int(w, "bare_every", x->bare_every);
    vp_json_key(w, "options");
    put_options(w, x->o);
    vp_json_key(w, "data");
    vp_json_begin_array(w);
    for (size_t i = 0; i < x->p.set_count; i++) {
        const dataset *d = &x->p.sets[i];
        vp_json_begin_object(w);
        put_text(w, "task", d->task);
        put_text(w, "path", d->path);
        put_text(w, "metric", vp_score_metric_of(d->metric)->name);
        put_int(w, "max_new_tokens", d->new_tokens);
        put_int(w, "num_samples", (int64_t)d->count);
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)d->hash);
        put_text(w, "content_hash", hash);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
    vp_json_key(w, "configs");
    vp_json_begin_array(w);
    for (size_t i = 0; i < x->p.cell_count; i++) put_head_cell(w, x, &x->p.cells[i]);
    vp_json_end_array(w);
    return journal_line_append(&x->j);
}
/* After the engine's first request, which is the cold one: where and how this session measures. */
static int write_session(sweep *x, const work *k, const timing *cold) {
    vp_json_writer *w = journal_line_begin(&x->j);
    int64_t at = x->j.end;
    int code;
    vp_json_key(w, "session");
    vp_json_begin_object(w);
    put_provenance(w, x->o, x->s.engine);
    put_int(w, "rank", x->rank.rank);
    put_int(w, "world_size", x->rank.world_size);
    put_text(w, "launcher", x->rank.launcher);
    put_int(w, "stamp_cost_ns", vp_engine_stamp_cost_ns(x->s.engine));
    vp_json_key(w, "cold");
    vp_json_begin_object(w);
    put_double(w, "T_total", metric_of(cold, METRIC_TOTAL));
    put_double(w, "TTFT", metric_of(cold, METRIC_TTFT));
    put_int(w, "views", k->layout ? k->layout->views : 0);
    put_int(w, "total_sequence_length", sequence_of(k));
    put_int(w, "output_tokens", cold->token_count);
    vp_json_end_object(w);
    vp_json_end_object(w);
    code = journal_line_append(&x->j);
    x->session_at = at;
    return code;
}
static int write_sample(sweep *x, size_t set, const sample *a) {
    vp_json_writer *w = journal_line_begin(&x->j);
    put_int(w, "sample", a->id);
    put_int(w, "set", (int64_t)set);
    put_text(w, "prompt", a->prompt);
    put_int(w, "input_text_tokens", a->text_count);
    put_metadata(w, &x->scratch, a);
    return journal_line_append(&x->j);
}
/* The beginning of a point's line; `last` becomes this line's place once it is written. */
static vp_json_writer *point_begin(sweep *x, const open_point *p, const sample *a) {
    vp_json_writer *w = journal_line_begin(&x->j);
    put_text(w, "config", p->c->file_name);
    put_int(w, "sample_id", a->id);
    put_int(w, "prev", p->last);
    return w;
}
static int point_append(sweep *x, open_point *p) {
    int64_t at;
    text_buffer line;
    int code = journal_line_end(&x->j);
    if (code) return code;
    if (x->held.bytes && (code = journal_append(&x->j, x->held.data, x->held.bytes)) != 0) return code; /* a success behind them: they stand */
    x->held.bytes = 0;
    x->streak = 0;
    at = x->j.end;
    line = x->j.line;
    if ((code = journal_append(&x->j, line.data, line.bytes)) == 0) p->last = at;
    return code;
}
static void put_stages(vp_json_writer *w, const vp_stage_times *t) {
    vp_json_key(w, "stages");
    vp_json_begin_object(w);
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        if (!t->ran[i]) continue;
        vp_json_key(w, vp_stage_name((vp_stage)i));
        vp_json_begin_array(w);
        vp_json_int(w, t->wall_ns[i]);
        vp_json_int(w, t->device_ns[i]);
        vp_json_int(w, t->launches[i]);
        vp_json_int(w, t->flops[i]);
        vp_json_int(w, t->bytes[i]);
        vp_json_end_array(w);
    }
    vp_json_end_object(w);
}
static int write_run(sweep *x, open_point *p, const sample *a, const timing *t) {
    vp_json_writer *w = point_begin(x, p, a);
    put_int(w, "run", p->runs);
    put_int(w, "session", x->session_at);
    put_int(w, "unix_s", (int64_t)time(NULL));
    put_int(w, "total_ns", t->total_ns);
    put_int(w, "stamps", x->timing_off ? 0 : t->times.stamps + CHAIN_STAMPS);
    put_stages(w, &t->times);
    vp_json_key(w, "step_ns");
    vp_json_begin_array(w);
    for (int32_t i = 0; !x->timing_off && i + 1 < t->token_count; i++) vp_json_int(w, t->step_ns[i]);
    vp_json_end_array(w);
    put_ints(w, "tokens", t->tokens, t->token_count);
    put_answer(w, "answer", t);
    put_bool(w, "ended_by_eos", t->ended_by_eos);
    put_bool(w, "throttled", x->is_throttled);
    vp_json_key(w, "telemetry");
    if (x->has_telemetry) put_telemetry(w, &x->telemetry); else vp_json_null(w);
    return point_append(x, p);
}
static void put_point_layout_of(vp_json_writer *w, const sweep *x, const open_point *p, const sample *a) {
    vp_tile_options tiles = cell_tiles(p->c);
    point q;
    memset(&q, 0, sizeof q);
    q.a = a;
    q.layout = p->l;
    q.tier = p->c->tier ? p->c->tier->name : NULL;
    q.top_k = p->c->top_k;
    q.block_count = p->c->block_count;
    if (p->l) {
        q.target_tokens = target_tokens_of(&tiles, p->l);
        q.target_crops = p->l->crops;
        if (!p->c->tier) vp_select_crops(&x->m.config.geometry, p->c->vision_tokens, &q.target_crops);
    }
    vp_json_key(w, "sizes");
    vp_json_begin_object(w);
    put_point_layout(w, &q);
    vp_json_end_object(w);
}
static int write_done(sweep *x, open_point *p, const sample *a, vp_stop stop) {
    vp_json_writer *w = point_begin(x, p, a);
    int code;
    put_int(w, "done", p->runs);
    put_text(w, "stop", vp_stop_name((int32_t)stop));
    put_int(w, "retries", p->retries);
    put_point_layout_of(w, x, p, a);
    code = point_append(x, p);
    p->is_open = 0;
    x->done += !code;
    return code;
}
/* hold: the line waits until a success shows that it is this point that fails; FAILURES_IN_A_ROW such lines are dropped, the points stay open. */
static int write_failed(sweep *x, open_point *p, const sample *a, const char *reason, int hold) {
    vp_json_writer *w = point_begin(x, p, a);
    int code;
    put_text(w, "failed", reason);
    put_int(w, "attempts", p->retries + 1);
    put_int(w, "retries", p->retries);
    put_point_layout_of(w, x, p, a);
    if ((code = journal_line_end(&x->j)) != 0) return code;
    if (hold) text_add(&x->held, x->j.line.data, x->j.line.bytes);
    else code = journal_append(&x->j, x->j.line.data, x->j.line.bytes); /* says nothing about the failures before it */
    p->is_open = 0;
    x->done += !code;
    x->failed += !code;
    return code;
}
static int check_streak(sweep *x, int exit_code, const char *reason) {
    if (++x->streak < FAILURES_IN_A_ROW) return 0;
    for (const char *p = x->held.data; x->held.bytes && p && (p = strchr(p, '\n')) != NULL; p++) { x->done--; x->failed--; }
    complain(exit_code, "%d failures in a row, the last one: %s", FAILURES_IN_A_ROW, reason);
    sweep_message(x, "stopped, these points are left open");
    return exit_code;
}

/* ---- the engine */
/* The engine is open: says where "auto" went, and refuses to mix times of a CPU and of a GPU in one set of results. */
static int check_session(sweep *x) {
    const book_file *f = &x->b.files[0];
    const char *note = vp_engine_device_note(x->s.engine);
    if (note[0] && !x->was_open && !given(x->o, "quiet"))
        complain(0, gpu_of(x->s.engine) < 0 ? "device: cpu (no CUDA: %s)" : "device: %s", note);
    if (!f->knows_device || f->on_gpu == (gpu_of(x->s.engine) >= 0)) return 0;
    return complain(EXIT_DEVICE, "the points in %s were measured on %s, this is %s: use another --output_dir", x->j.path, f->device,
                    vp_engine_device(x->s.engine));
}
/* The longest request of the configurations that are left; those with the largest one can be dropped. */
static int engine_needs(const sweep *x, int32_t *sequence, int32_t *views) {
    int left = 0;
    *sequence = 1;
    *views = 1;
    for (size_t i = 0; i < x->p.cell_count; i++) {
        const cell *c = &x->p.cells[i];
        if (c->dropped) continue;
        left++;
        if (c->need_sequence > *sequence) *sequence = c->need_sequence;
        if (c->need_views > *views) *views = c->need_views;
    }
    return left;
}
static int drop_largest(sweep *x, int32_t sequence, int32_t views, const char *reason) {
    int dropped = 0, left = 0;
    for (size_t i = 0; i < x->p.cell_count; i++) {
        const cell *c = &x->p.cells[i];
        left += !c->dropped && !(views > 1 ? c->need_views == views : c->need_sequence == sequence);
    }
    for (size_t i = 0; left && i < x->p.cell_count; i++) {
        cell *c = &x->p.cells[i];
        if (c->dropped || !(views > 1 ? c->need_views == views : c->need_sequence == sequence)) continue;
        c->dropped = copy_text(reason, strlen(reason));
        complain(0, "%s does not fit: %s", c->file_name, reason);
        dropped++;
    }
    return dropped;
}
/* Opens the engine, for as many configurations as fit into memory. 0, or the exit code that ends the sweep; *r tells of the device. */
static int engine_ready(sweep *x, vp_result *r, vp_error *error) {
    int32_t sequence, views;
    int code = 0;
    *r = VP_OK;
    while (!x->s.engine && !code) {
        char reason[LINE_BYTES];
        vp_error none = {VP_OK, -1, "", ""};
        *error = none;
        if (!engine_needs(x, &sequence, &views)) return 0;
        *r = engine_try(x->o, &x->m, x->device, sequence, views, &x->s.engine, error);
        if (*r == VP_OK) {
            x->warm_count = 0;
            x->session_at = -1;
            code = check_session(x);
            x->was_open = 1;
            return code;
        }
        if (*r == VP_ERR_INTERRUPTED) return EXIT_INTERRUPTED;
        error_line(reason, sizeof reason, *r, error);
        if (*r == VP_ERR_MEMORY && drop_largest(x, sequence, views, reason)) continue;
        return x->was_open ? 0 : complain_result(exit_code_of(*r), x->m.name, *r, error);
    }
    return code;
}
/* One untimed short request per shape (views, sequence in steps of 256), image encoder included. */
static int warm_up(sweep *x, const work *k, vp_result *result, vp_error *error) {
    shape now = {k->layout ? k->layout->views : 0, sequence_of(k) / 256, k->top_k, k->block_count};
    work once = *k;
    int shape_is_warm = 0, knobs_are_warm = 0; /* a GPU records a decode step for each choice of knobs */
    for (size_t i = 0; i < x->warm_count; i++) {
        shape_is_warm |= x->warm[i].views == now.views && x->warm[i].sequence == now.sequence;
        knobs_are_warm |= x->warm[i].top_k == now.top_k && x->warm[i].block_count == now.block_count;
    }
    if (shape_is_warm && knobs_are_warm) return 0;
    if (once.new_tokens > 2) once.new_tokens = 2;
    once.ignore_eos = 1;
    once.timing = VP_TIMING_STAGE; /* the cold first request has its TTFT */
    if ((*result = request_run(&x->s, &once, x->run, error)) != VP_OK) return 0;
    x->warm = resize(x->warm, x->warm_count + 1, sizeof *x->warm);
    x->warm[x->warm_count++] = now;
    return x->session_at < 0 ? write_session(x, k, x->run) : 0;
}
static void read_telemetry(sweep *x) {
    vp_telemetry before = x->telemetry, now;
    int64_t start = vp_clock_ns();
    if (x->telemetry_ns && start - x->telemetry_ns < INT64_C(50000000)) return; /* reading has a cost, and clocks move slowly */
    x->telemetry_ns = start;
    if (vp_device_telemetry(gpu_of(x->s.engine), &now, NULL) != VP_OK) { x->has_telemetry = x->is_throttled = 0; return; }
    x->is_throttled = now.has_throttle_reasons ? (now.throttle_reasons & VP_THROTTLE_SLOWED) != 0
                    : x->has_telemetry && now.throttle_count > before.throttle_count;
    x->telemetry = now;
    x->has_telemetry = 1;
}
/* One run, tried again after errors of the device; afterwards `reason` is empty, or says why it failed. 0, or the exit code that ends the sweep. */
static int try_run(sweep *x, open_point *p, const work *k, char *reason, size_t capacity, int *is_device) {
    *is_device = 0;
    for (int32_t attempt = 0;; attempt++) {
        vp_error error = {VP_OK, -1, "", ""};
        vp_result r = VP_OK;
        int code = engine_ready(x, &r, &error);
        if (code) return code;
        if (p->c->dropped) { snprintf(reason, capacity, "%s", p->c->dropped); return 0; }
        if (r == VP_OK && (code = warm_up(x, k, &r, &error)) != 0) return code;
        if (r == VP_OK) r = request_run(&x->s, k, x->run, &error);
        reason[0] = 0;
        if (r == VP_OK) return 0;
        if (r == VP_ERR_INTERRUPTED) return EXIT_INTERRUPTED;
        error_line(reason, capacity, r, &error);
        if (r != VP_ERR_DEVICE && r != VP_ERR_MEMORY) return 0;
        if (x->s.engine && vp_engine_broken(x->s.engine)) { /* the next attempt opens a new one: a new session */
            vp_engine_close(x->s.engine);
            x->s.engine = NULL;
        }
        if (attempt < x->max_retries) { p->retries++; continue; }
        if (r == VP_ERR_MEMORY) {
            p->c->dropped = copy_text(reason, strlen(reason));
            complain(0, "%s does not fit: %s", p->c->file_name, reason);
        } else *is_device = 1;
        return 0;
    }
}

/* ---- a sample */
/* Takes up a point where its last line in the journal left it. */
static int resume_point(sweep *x, open_point *p, const book_entry *e) {
    const vp_json *j = &x->b.scratch.json;
    int64_t state = e && p->c->in_book >= 0 ? book_entry_state(e, &x->b.cells[p->c->in_book]) : -1;
    int code;
    p->is_open = state < 0 || (state & 3) == POINT_OPEN || ((state & 3) == POINT_FAILED && given(x->o, "retry_failed"));
    p->runs = p->retries = 0;
    p->has_bare = 0;
    p->spent_ns = 0;
    p->last = state >= 0 && (state & 3) == POINT_OPEN ? state >> 2 : -1;
    for (int64_t at = p->last; at >= 0;) {
        int64_t run, prev;
        if ((code = book_line(&x->b, 0, at)) != 0) return code;
        run = node_int(j, 0, "run", -1);
        prev = node_int(j, 0, "prev", -1);
        if (run < 0) p->has_bare = 1;
        else if (run < x->rule.max_runs) {
            if (run >= p->runs) p->runs = (int32_t)run + 1;
            p->totals[run] = (double)node_int(j, 0, "total_ns", 0);
            p->spent_ns += node_int(j, 0, "total_ns", 0);
        }
        at = prev < at ? prev : -1;
    }
    return 0;
}
/* The pair that tells what stage times cost: the point once more without and with them, in random order. */
static int measure_bare(sweep *x, open_point *p, const sample *a) {
    uint64_t toss = hash_text(hash_number(hash_number(HASH_START, number_of(x->o, "seed")), a->id), p->c->file_name);
    int64_t ns[2] = {0, 0};
    int bare_first = (int)(toss >> 33 & 1), is_device, code;
    char reason[LINE_BYTES] = "";
    vp_json_writer *w;
    p->has_bare = 1;
    for (int i = 0; i < 2; i++) {
        work k = p->k;
        int bare = (i == 0) == bare_first;
        k.timing = bare ? VP_TIMING_OFF : VP_TIMING_STAGE;
        if ((code = try_run(x, p, &k, reason, sizeof reason, &is_device)) != 0) return code;
        if (reason[0]) return 0; /* the point has its runs; a pair less is no loss */
        ns[bare] = x->run->total_ns;
    }
    w = point_begin(x, p, a);
    vp_json_key(w, "bare");
    vp_json_begin_object(w);
    put_int(w, "bare_total_ns", ns[1]);
    put_int(w, "staged_total_ns", ns[0]);
    put_bool(w, "bare_first", bare_first);
    vp_json_end_object(w);
    put_int(w, "session", x->session_at);
    return point_append(x, p);
}
/* Once per shape and configuration, when asked for: every kernel between two stamps of its own. */
static int measure_kernels(sweep *x, open_point *p, const sample *a) {
    work k = p->k;
    int32_t views = p->l ? p->l->views : 0;
    char reason[LINE_BYTES] = "";
    int is_device, code;
    vp_json_writer *w;
    if (!x->kernel_pass) return 0;
    for (size_t i = 0; i < p->c->shape_count; i++) if (p->c->shapes[i].views == views && p->c->shapes[i].sequence == sequence_of(&k) / 256) return 0;
    p->c->shapes = resize(p->c->shapes, p->c->shape_count + 1, sizeof *p->c->shapes);
    p->c->shapes[p->c->shape_count].views = views;
    p->c->shapes[p->c->shape_count++].sequence = sequence_of(&k) / 256;
    k.timing = VP_TIMING_KERNEL;
    if ((code = try_run(x, p, &k, reason, sizeof reason, &is_device)) != 0) return code;
    if (reason[0] || !x->run->times.has_kernels) return 0;
    w = journal_line_begin(&x->j);
    vp_json_key(w, "kernels");
    vp_json_begin_object(w);
    put_text(w, "config", p->c->file_name);
    put_int(w, "sample_id", a->id);
    put_int(w, "views", views);
    put_int(w, "total_sequence_length", sequence_of(&k));
    put_double(w, "T_total", metric_of(x->run, METRIC_TOTAL));
    vp_json_key(w, "stages");
    vp_json_begin_object(w);
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        double device = stage_value(x->run, i, DETAIL_DEVICE), kernels = (double)x->run->times.kernel_ns[i] / 1e6;
        if (!isfinite(device)) continue;
        vp_json_key(w, vp_stage_name((vp_stage)i));
        vp_json_begin_object(w);
        put_double(w, "device_ms", device);
        put_double(w, "kernel_ms", kernels);
        put_double(w, "idle_share", device > 0 ? 1 - kernels / device : (double)NAN);
        vp_json_key(w, "parts"); /* kernel_ms by part of the model */
        vp_json_begin_object(w);
        for (int part = 0; part < VP_PART_COUNT; part++)
            if (x->run->times.part_ns[i][part]) put_double(w, vp_part_name((vp_part)part), (double)x->run->times.part_ns[i][part] / 1e6);
        vp_json_end_object(w);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
    vp_json_end_object(w);
    return journal_line_append(&x->j);
}
static int close_point(sweep *x, open_point *p, const sample *a, vp_stop stop) {
    int code = p->bare_is_due && !p->has_bare ? measure_bare(x, p, a) : 0;
    if (!code) code = measure_kernels(x, p, a);
    if (!code) {
        const profile_place profiled = {(size_t)(p->c - x->p.cells), p->c->file_name, a->id, p->is_first};
        code = profile_point(x->o, &x->s, &p->k, x->run, &profiled);
    }
    return code ? code : write_done(x, p, a, stop);
}
static void sweep_progress(const sweep *x, const cell *c, const sample *a, int32_t run) {
    double seconds = (double)(vp_clock_ns() - x->start_ns) / 1e9;
    double rate = (double)(x->done - x->done_before) / (seconds > 1e-9 ? seconds : 1e-9);
    int64_t left = rate > 0 ? (int64_t)((double)(x->point_count - x->done) / rate) : 0;
    char eta[40] = "?";
    if (given(x->o, "quiet")) return;
    if (rate > 0) snprintf(eta, sizeof eta, "%lld:%02lld:%02lld", (long long)(left / 3600), (long long)(left / 60 % 60), (long long)(left % 60));
    show_progress("%zu of %zu points, %.2f points/s, ETA %s, sample %lld, run %d, %s", x->done, x->point_count, rate, eta, (long long)a->id, run,
                  c->file_name);
}
/* The next run of a point, and whether it was the last one. */
static int measure_run(sweep *x, open_point *p, const sample *a) {
    char reason[LINE_BYTES] = "";
    vp_stop stop = VP_STOP_NOT;
    int is_device, code;
    if (p->runs < x->rule.min_runs || vp_stop_decide(&x->rule, p->totals, (size_t)p->runs, p->spent_ns, p->scratch, &stop) != VP_OK
        || stop == VP_STOP_NOT) {
        if ((code = try_run(x, p, &p->k, reason, sizeof reason, &is_device)) != 0) return code;
        if (reason[0]) {
            if ((code = write_failed(x, p, a, reason, is_device)) != 0) return code;
            return is_device ? check_streak(x, EXIT_DEVICE, reason) : 0;
        }
        read_telemetry(x);
        if ((code = write_run(x, p, a, x->run)) != 0) return code;
        p->totals[p->runs++] = (double)x->run->total_ns;
        p->spent_ns += x->run->total_ns;
        x->runs_now++;
        sweep_progress(x, p->c, a, p->runs);
        if (p->runs < x->rule.min_runs || interrupted) return 0;
        if (vp_stop_decide(&x->rule, p->totals, (size_t)p->runs, p->spent_ns, p->scratch, &stop) != VP_OK || stop == VP_STOP_NOT) return 0;
    }
    return close_point(x, p, a, stop);
}
/* What can be said without the engine: 1 and a reason when the point fails. */
static int cannot_run(const sweep *x, const open_point *p, const char *image_reason, char *reason, size_t capacity) {
    int64_t need = positions_of(&p->k);
    if (!reason[0] && p->l && image_reason[0]) snprintf(reason, capacity, "%s", image_reason);
    if (!reason[0] && need > x->m.config.max_positions)
        snprintf(reason, capacity, "the sequence needs %lld positions with its new tokens, the model has %d", (long long)need,
                 x->m.config.max_positions);
    return reason[0] != 0;
}
/* A sample is loaded: its image, and a first look at every open point. */
static int sample_begin(sweep *x, size_t count, const sample *a, const entry *e, vp_image *image) {
    char image_reason[LINE_BYTES] = "", reason[LINE_BYTES];
    int tried = 0, vanished = 0, code = 0;
    for (size_t i = 0; i < count && !code; i++) {
        open_point *p = &x->open[i];
        if (!p->is_open) continue;
        p->l = cell_layout(&x->m, p->c, e, &p->layout, reason, sizeof reason);
        if (a->reason) snprintf(reason, sizeof reason, "%s", a->reason);
        cell_work(&x->p, p->c, a, p->l, image, &p->k);
        if (x->timing_off) p->k.timing = VP_TIMING_OFF;
        if (p->l && !tried++ && sample_image(a, image, image_reason, sizeof image_reason) == EXIT_DEVICE)
            return complain(EXIT_DEVICE, "%s", image_reason);
        if (image_reason[0] && access(a->image_path, R_OK)) vanished = 1;
        if (cannot_run(x, p, image_reason, reason, sizeof reason)) code = write_failed(x, p, a, reason, vanished);
    }
    return code || !vanished ? code : check_streak(x, EXIT_INPUT, image_reason);
}
/* All configurations of one sample, run by run: drift of the machine hits all alike. The image is decoded once. */
static int sweep_sample(sweep *x, cell *cells, size_t cell_count, size_t index) {
    const dataset *d = cells->set;
    size_t set = (size_t)(d - x->p.sets), open_count = 0;
    const book_entry *e = x->b.set_count ? book_find(&x->b.sets[set], 0, d->samples[index].id) : NULL;
    vp_image image = {0, 0, NULL};
    sample a;
    int code = 0;
    for (size_t i = 0; i < cell_count && !code; i++) {
        x->open[i].c = &cells[i];
        code = resume_point(x, &x->open[i], e);
        x->open[i].bare_is_due = x->bare_every && !x->timing_off && (index + i) % (size_t)x->bare_every == 0;
        x->open[i].is_first = !index;
        open_count += (size_t)x->open[i].is_open;
    }
    if (code || !open_count) return code;
    if ((code = dataset_sample(d, &x->m, index, &a)) != 0) return code;
    if (!e) code = write_sample(x, set, &a);
    if (!code) code = sample_begin(x, cell_count, &a, &d->samples[index], &image);
    for (int64_t round = 0; !code && !interrupted && open_count; round++) {
        open_count = 0;
        for (size_t i = 0; i < cell_count && !code && !interrupted; i++) {
            if (x->open[i].is_open && (x->open[i].runs <= round)) code = measure_run(x, &x->open[i], &a);
            open_count += (size_t)x->open[i].is_open;
        }
    }
    if (image.rgb) vp_image_free(&image);
    sample_free(&a);
    return code;
}
int sweep_loop(sweep *x) {
    int code = 0;
    x->start_ns = vp_clock_ns();
    for (size_t first = 0; first < x->p.cell_count && !code;) {
        const dataset *d = x->p.cells[first].set;
        size_t last = first, at = 0, stride = 1, count = 0;
        while (last < x->p.cell_count && x->p.cells[last].set == d) last++;
        vp_sampler_shard(d->count, x->rank.rank, x->rank.world_size, &at, &stride, &count);
        for (; count && !code && !interrupted; at += stride, count--) code = sweep_sample(x, &x->p.cells[first], last - first, at);
        first = last;
    }
    if (!code && !interrupted && x->held.bytes) code = journal_append(&x->j, x->held.data, x->held.bytes);
    if (!code && !interrupted && !(x->b.files[0].is_finished && is_same_grid(x) && x->j.end == x->b.files[0].end)) {
        put_bool(journal_line_begin(&x->j), "finished", 1);
        code = journal_line_append(&x->j);
    }
    if (code != EXIT_OUTPUT) { /* what was written before an error counts */
        int synced = journal_sync(&x->j);
        if (!code) code = synced;
    }
    close_progress();
    return code;
}
