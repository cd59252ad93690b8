/* trace_tables.c: the events of a trace to tables.
 * Operations follow torch.profiler's key_averages(): a slice of a host thread is within the innermost one there that
 * encloses it; self is the time no slice within covers; a slice that is the only one within another of its name is
 * counted as that one; device time is that of the kernels whose "External id" is the operation's (without one: whose
 * launch lies in it). Where slices of a thread overlap without nesting, torch counts the common time twice in what
 * is around them; here once, so that self is never negative. */
#include "trace/trace_tables.h"

#include "base/console.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- operations: who is within whom, and whose the device's time is */
typedef struct host_op {
    uint32_t event, parent, key, children; /* parent: an operation, or NO_INDEX; key: what rows are told apart by */
    int64_t covered_ns, covered_end;       /* by slices within */
    int64_t own_device_ns, device_ns;      /* of its own launches; with those within */
    int64_t bytes[2], within_bytes[2];     /* memory of the CPU and of devices: during it, and during slices directly within */
    uint32_t alias;                        /* the operation that counts for this one, or NO_INDEX */
    int is_nested_in_own;                  /* within another of its key */
} host_op;
typedef struct id_index { int64_t id; uint32_t index; } id_index;

static int id_order(const void *left, const void *right) {
    const id_index *a = (const id_index *)left, *b = (const id_index *)right;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}
static uint32_t id_find(const id_index *ids, size_t count, int64_t id) { /* the first of that id, or NO_INDEX */
    size_t low = 0, high = count;
    if (id < 0) return NO_INDEX;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ids[middle].id < id) low = middle + 1; else high = middle;
    }
    return low < count && ids[low].id == id ? ids[low].index : NO_INDEX;
}
static int slice_order(const void *left, const void *right) { /* by track and begin, the longer first: the outer one before what is within */
    const trace_event *a = (const trace_event *)left, *b = (const trace_event *)right;
    if (a->track != b->track) return a->track < b->track ? -1 : 1;
    if (a->begin_ns != b->begin_ns) return a->begin_ns < b->begin_ns ? -1 : 1;
    if (a->ns != b->ns) return a->ns > b->ns ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}
static int is_hidden(const char *name) { /* torch's own helpers, which its tables leave out */
    static const char *const hidden[] = {"profiler::_record_function_enter", "profiler::_record_function_enter_new",
                                         "profiler::_record_function_exit", "aten::is_leaf", "aten::output_nr", "aten::_version"};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) if (!strcmp(name, hidden[i])) return 1;
    return 0;
}
/* "External id" of operations and annotations, or correlation of launching calls -> event */
static id_index *index_events(const trace *t, int by_correlation, size_t *count) {
    id_index *ids = resize(NULL, t->count, sizeof *ids);
    *count = 0;
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        int64_t id = by_correlation ? e->correlation : e->external;
        if (id < 0 || (by_correlation ? e->category != TRACE_RUNTIME : e->category != TRACE_OP && e->category != TRACE_USER)) continue;
        if (!by_correlation && is_hidden(text_table_at(&t->names, e->name))) continue;
        ids[*count].id = id;
        ids[(*count)++].index = (uint32_t)i;
    }
    qsort(ids, *count, sizeof *ids, id_order);
    return ids;
}
/* A runtime call belongs to the thread of the operation that it serves, as torch has it. Then all slices into their final order. */
static void order_slices(trace *t) {
    size_t count;
    id_index *ids = index_events(t, 0, &count);
    for (size_t i = 0; i < t->count; i++) {
        uint32_t owner = t->events[i].category == TRACE_RUNTIME ? id_find(ids, count, t->events[i].external) : NO_INDEX;
        if (owner != NO_INDEX) t->events[i].track = t->events[owner].track;
    }
    free(ids);
    if (t->count) qsort(t->events, t->count, sizeof *t->events, slice_order);
}

static uint32_t key_of(trace_tables *x, const trace_event *e, int by_shapes) {
    const trace *t = x->t;
    text_buffer text = {NULL, 0, 0};
    uint32_t key;
    if (!by_shapes || e->shapes == NO_INDEX) return text_table_add(&x->keys, text_table_at(&t->names, e->name));
    text_add_string(&text, text_table_at(&t->names, e->name));
    text_add(&text, " ", 1);
    text_add_string(&text, text_table_at(&t->names, e->shapes));
    key = text_table_add(&x->keys, text.data);
    free(text.data);
    return key;
}
/* Host slices as operations, in the order of the slices; a parent stands before what is within. */
static host_op *collect_ops(trace_tables *x, int by_shapes, size_t *count) {
    const trace *t = x->t;
    host_op *ops = zeroed(t->count, sizeof *ops);
    *count = 0;
    for (size_t i = 0; i < t->count; i++) {
        host_op *p = &ops[*count];
        if (t->events[i].category > TRACE_PYTHON || is_hidden(text_table_at(&t->names, t->events[i].name))) continue;
        p->event = (uint32_t)i;
        p->parent = p->alias = NO_INDEX;
        p->key = key_of(x, &t->events[i], by_shapes);
        p->covered_end = t->events[i].begin_ns;
        (*count)++;
    }
    return ops;
}
static void cover_parent(host_op *p, const trace_event *e) { /* slices within come in the order of their begin */
    int64_t begin = e->begin_ns > p->covered_end ? e->begin_ns : p->covered_end, end = e->begin_ns + e->ns;
    p->children++;
    if (end <= begin) return;
    p->covered_ns += end - begin;
    p->covered_end = end;
}
static void nest_ops(trace_tables *x, host_op *ops, size_t count) {
    const trace_event *events = x->t->events;
    uint32_t *stack = resize(NULL, count, sizeof *stack), *open = zeroed(x->keys.count + 1, sizeof *open);
    size_t depth = 0;
    for (size_t i = 0; i < count; i++) {
        const trace_event *e = &events[ops[i].event];
        for (; depth; depth--) {
            const trace_event *p = &events[ops[stack[depth - 1]].event];
            int64_t end = p->begin_ns + p->ns;
            if (p->track == e->track && e->begin_ns < end && e->begin_ns + e->ns <= end) break;
            x->overlaps += p->track == e->track && e->begin_ns < end;
            open[ops[stack[depth - 1]].key]--;
        }
        if (depth) {
            ops[i].parent = stack[depth - 1];
            cover_parent(&ops[stack[depth - 1]], e);
        }
        ops[i].is_nested_in_own = open[ops[i].key]++ > 0;
        stack[depth++] = (uint32_t)i;
    }
    free(stack);
    free(open);
}
/* Each device slice's time to the operation that asked for it. */
static void charge_device(trace_tables *x, host_op *ops, size_t count) {
    const trace *t = x->t;
    size_t external_count, correlation_count;
    id_index *external = index_events(t, 0, &external_count), *correlation = index_events(t, 1, &correlation_count);
    uint32_t *op_of = resize(NULL, t->count, sizeof *op_of);
    memset(op_of, 0xff, t->count * sizeof *op_of);
    for (size_t i = 0; i < count; i++) op_of[ops[i].event] = (uint32_t)i;
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        uint32_t owner;
        if (!is_device_work(e->category)) continue;
        owner = id_find(external, external_count, e->external);
        if (owner == NO_INDEX) owner = id_find(correlation, correlation_count, e->correlation);
        if (owner == NO_INDEX || (owner = op_of[owner]) == NO_INDEX) continue;
        if (t->events[ops[owner].event].category == TRACE_RUNTIME && ops[owner].parent != NO_INDEX) owner = ops[owner].parent;
        ops[owner].own_device_ns += e->ns;
    }
    free(external);
    free(correlation);
    free(op_of);
}
static int memory_order(const void *left, const void *right) {
    const trace_memory *a = (const trace_memory *)left, *b = (const trace_memory *)right;
    return (a->ns > b->ns) - (a->ns < b->ns);
}
static size_t memory_before(const trace *t, int64_t ns) { /* records earlier than that */
    size_t low = 0, high = t->memory_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->memory[middle].ns < ns) low = middle + 1; else high = middle;
    }
    return low;
}
static int64_t wrapping_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); } /* sums of a hostile file's bytes */
/* Memory taken and given back during each operation, on whatever thread, as torch counts it; what no operation covers is a row "[memory]". */
static void charge_memory(trace_tables *x, host_op *ops, size_t count, int64_t alone[2], int64_t *alone_calls) {
    const trace *t = x->t;
    int64_t (*sums)[2] = (int64_t (*)[2])zeroed(t->memory_count + 1, sizeof *sums);
    int64_t *covered = zeroed(t->memory_count + 1, sizeof *covered);
    for (size_t i = 0; i < t->memory_count; i++)
        for (int k = 0; k < 2; k++) sums[i + 1][k] = wrapping_add(sums[i][k], (t->memory[i].type != 0) == k ? t->memory[i].bytes : 0);
    for (size_t i = 0; i < count; i++) {
        const trace_event *e = &t->events[ops[i].event];
        size_t first = memory_before(t, e->begin_ns), last = memory_before(t, e->begin_ns + e->ns + 1);
        covered[first]++;
        covered[last]--;
        for (int k = 0; k < 2; k++) ops[i].bytes[k] = wrapping_add(sums[last][k], -sums[first][k]);
    }
    for (size_t i = 0; i < t->memory_count; i++) {
        if (i) covered[i] += covered[i - 1];
        if (covered[i]) continue;
        alone[t->memory[i].type != 0] = wrapping_add(alone[t->memory[i].type != 0], t->memory[i].bytes);
        ++*alone_calls;
    }
    free(sums);
    free(covered);
}
/* The only slice within one of its own name is that one (torch's _remove_dup_nodes). */
static void merge_repeats(trace_tables *x, host_op *ops, size_t count) {
    const trace_event *events = x->t->events;
    for (size_t i = 0; i < count; i++) {
        host_op *p;
        if (ops[i].parent == NO_INDEX) continue;
        if (ops[ops[i].parent].alias != NO_INDEX) ops[i].parent = ops[ops[i].parent].alias;
        p = &ops[ops[i].parent];
        if (p->children != 1 || events[p->event].name != events[ops[i].event].name) continue;
        p->children = ops[i].children;
        p->covered_ns = ops[i].covered_ns;
        p->own_device_ns = ops[i].own_device_ns;
        ops[i].alias = ops[i].parent;
    }
}
int trace_ops_failed(const trace_tables *x, vp_result r) {
    return r == VP_OK ? 0 : complain(exit_code_of(r) == EXIT_USAGE ? EXIT_INPUT : exit_code_of(r), "%s: the table of operations: %s", x->t->path,
                                     vp_result_text(r));
}
static vp_result add_op(trace_tables *x, const host_op *p) {
    const trace_event *e = &x->t->events[p->event];
    vp_op op = vp_op_default();
    op.name = text_table_at(&x->keys, p->key);
    op.primitive_calls = !p->is_nested_in_own;
    op.host_total_ns = e->ns;
    op.host_self_ns = e->ns - p->covered_ns;
    op.device_total_ns = p->device_ns;
    op.device_self_ns = p->own_device_ns;
    op.host_memory_bytes = p->bytes[0];
    op.host_self_memory_bytes = wrapping_add(p->bytes[0], -p->within_bytes[0]);
    op.device_memory_bytes = p->bytes[1];
    op.device_self_memory_bytes = wrapping_add(p->bytes[1], -p->within_bytes[1]);
    return vp_ops_add(&x->ops, &op);
}
static int table_ops(trace_tables *x, int by_shapes) {
    const trace *t = x->t;
    size_t count;
    host_op *ops = collect_ops(x, by_shapes, &count);
    int64_t alone[2] = {0, 0}, alone_calls = 0;
    vp_result r = VP_OK;
    nest_ops(x, ops, count);
    charge_device(x, ops, count);
    charge_memory(x, ops, count, alone, &alone_calls);
    merge_repeats(x, ops, count);
    for (size_t i = count; i-- > 0;) { /* from within to without */
        host_op *p;
        if (ops[i].alias != NO_INDEX) continue;
        ops[i].device_ns += ops[i].own_device_ns;
        if (ops[i].parent == NO_INDEX) continue;
        p = &ops[ops[i].parent];
        p->device_ns += ops[i].device_ns;
        for (int k = 0; k < 2; k++) p->within_bytes[k] = wrapping_add(p->within_bytes[k], ops[i].bytes[k]);
    }
    if (x->keys.count >= TRACE_ROWS_MAX) {
        free(ops);
        return complain(EXIT_INPUT, "%s: more than %d different operations: this is no trace of a program", t->path, TRACE_ROWS_MAX);
    }
    x->within_ns = zeroed(t->count, sizeof *x->within_ns);
    for (size_t i = 0; i < count; i++) x->within_ns[ops[i].event] = ops[i].covered_ns;
    x->op_rows = resize(NULL, (size_t)x->keys.count + 1, sizeof *x->op_rows);
    r = vp_ops_init(&x->ops, x->op_rows, (int64_t)x->keys.count + 1, 0, 0);
    for (size_t i = 0; i < count && r == VP_OK; i++)
        if (ops[i].alias == NO_INDEX && t->events[ops[i].event].category != TRACE_PYTHON) r = add_op(x, &ops[i]);
    if (r == VP_OK && alone_calls) {
        vp_op op = vp_op_default();
        op.name = "[memory]";
        op.calls = op.primitive_calls = alone_calls;
        op.host_memory_bytes = op.host_self_memory_bytes = alone[0];
        op.device_memory_bytes = op.device_self_memory_bytes = alone[1];
        r = vp_ops_add(&x->ops, &op);
    }
    free(ops);
    return trace_ops_failed(x, r);
}

/* ---- devices: what covers a track, kernels, launches, streams */
static int is_cover(const trace_event *e) { return !is_annotation(e->category) && e->category != TRACE_PYTHON; }
static void table_covers(trace_tables *x) {
    const trace *t = x->t;
    size_t count = 0;
    uint32_t track = 0;
    x->covers = resize(NULL, t->count, sizeof *x->covers);
    x->cover_start = zeroed((size_t)t->tracks.count + 1, sizeof *x->cover_start);
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        int64_t end = e->begin_ns + e->ns;
        cover *last = count ? &x->covers[count - 1] : NULL;
        if (!is_cover(e)) continue;
        while (track < e->track) x->cover_start[++track] = count;
        if (count > x->cover_start[track] && e->begin_ns <= last->end) {
            if (end > last->end) last->end = end;
            continue;
        }
        x->covers[count].before = count > x->cover_start[track] ? last->before + (last->end - last->begin) : 0;
        x->covers[count].begin = e->begin_ns;
        x->covers[count++].end = end;
    }
    while (track < t->tracks.count) x->cover_start[++track] = count;
}
static int64_t covered_before(const trace_tables *x, uint32_t track, int64_t ns) {
    size_t first = x->cover_start[track], low = first, high = x->cover_start[track + 1];
    const cover *c;
    while (low < high) { /* the first that begins at ns or later */
        size_t middle = low + (high - low) / 2;
        if (x->covers[middle].begin < ns) low = middle + 1; else high = middle;
    }
    if (low == first) return 0;
    c = &x->covers[low - 1];
    return c->before + ((ns < c->end ? ns : c->end) - c->begin);
}
static trace_row *row_new(trace_rows *rows, const char *name, const char *where) {
    trace_row *r;
    if (!(rows->count & (rows->count - 1))) rows->items = resize(rows->items, rows->count ? rows->count * 2 : 1, sizeof *rows->items);
    r = &rows->items[rows->count++];
    memset(r, 0, sizeof *r);
    r->name = name;
    r->where = where;
    r->min_ns = INT64_MAX;
    return r;
}
static void row_add(trace_row *r, const trace_event *e) {
    r->calls++;
    r->total_ns += e->ns;
    r->bytes = wrapping_add(r->bytes, e->bytes);
    if (e->ns < r->min_ns) r->min_ns = e->ns;
    if (e->ns > r->max_ns) r->max_ns = e->ns;
}
static int total_order(const void *left, const void *right) {
    const trace_row *a = (const trace_row *)left, *b = (const trace_row *)right;
    if (a->total_ns != b->total_ns) return a->total_ns > b->total_ns ? -1 : 1;
    return strcmp(a->name, b->name);
}
/* Rows by name of the slices that `which` tells; annotations of host and device apart. */
static void table_names(trace_tables *x, trace_rows *rows, int (*which)(int category)) {
    const trace *t = x->t;
    uint32_t *row_of = resize(NULL, (size_t)t->names.count * 2 + 1, sizeof *row_of);
    memset(row_of, 0xff, (size_t)t->names.count * 2 * sizeof *row_of);
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        int on_device = !is_host_category(e->category);
        uint32_t *at = &row_of[(size_t)e->name * 2 + (size_t)on_device];
        if (!which(e->category)) continue;
        if (*at == NO_INDEX) {
            *at = (uint32_t)rows->count;
            row_new(rows, text_table_at(&t->names, e->name), on_device ? "device" : "host");
        }
        row_add(&rows->items[*at], e);
        if (e->category == TRACE_USER) rows->items[*at].busy_ns += x->within_ns[i];
        else if (e->category == TRACE_DEVICE_USER)
            rows->items[*at].busy_ns += covered_before(x, e->track, e->begin_ns + e->ns) - covered_before(x, e->track, e->begin_ns);
    }
    free(row_of);
    if (rows->count) qsort(rows->items, rows->count, sizeof *rows->items, total_order);
}
static int is_runtime_call(int category) { return category == TRACE_RUNTIME; }

/* Time between the end of the launching call and the start on the device (HTA's launch delay, but not cut at 0). */
static void table_launches(trace_tables *x) {
    const trace *t = x->t;
    size_t count, delays = 0;
    id_index *calls = index_events(t, 1, &count);
    double *delay = resize(NULL, t->count, sizeof *delay);
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        uint32_t call;
        if (!is_device_work(e->category)) continue;
        x->kernel_ns += e->ns;
        call = id_find(calls, count, e->correlation);
        if (call == NO_INDEX) { x->unlaunched++; continue; }
        delay[delays++] = (double)(e->begin_ns - t->events[call].begin_ns - t->events[call].ns) / 1e3;
    }
    x->launched = (int64_t)delays;
    if (delays) vp_statistics_compute(delay, delays, delay, &x->delay);
    free(delay);
    free(calls);
    table_names(x, &x->calls, is_runtime_call);
}

/* A stream's queue: one more from the start of the launching call, one less when the device begins (HTA's queue length). */
typedef struct queue_change { int64_t ns; int by; } queue_change;
static int change_order(const void *left, const void *right) {
    const queue_change *a = (const queue_change *)left, *b = (const queue_change *)right;
    if (a->ns != b->ns) return a->ns < b->ns ? -1 : 1;
    return b->by - a->by;
}
static void measure_queue(trace_row *r, queue_change *changes, size_t count) {
    double area = 0;
    int64_t length = 0;
    if (!count) return;
    qsort(changes, count, sizeof *changes, change_order);
    for (size_t i = 0; i < count; i++) {
        if (i) area += (double)length * (double)(changes[i].ns - changes[i - 1].ns);
        length += changes[i].by;
        if (length > r->queue_most) r->queue_most = length;
    }
    if (changes[count - 1].ns > changes[0].ns) r->queue_mean = area / (double)(changes[count - 1].ns - changes[0].ns);
}
/* One track: slices first .. last, in the order of their begin. A gap is the host's where the next slice was launched after it began, the
 * device's own below 30 ns (both as HTA has it). */
static void table_track(trace_tables *x, size_t first, size_t last, const id_index *calls, size_t call_count) {
    const trace *t = x->t;
    uint32_t track = t->events[first].track, label = t->labels[track];
    queue_change *changes = resize(NULL, (last - first) * 2, sizeof *changes);
    size_t change_count = 0;
    int64_t end = 0, begin = 0;
    trace_row *r = NULL;
    for (size_t i = first; i < last; i++) {
        const trace_event *e = &t->events[i];
        uint32_t call;
        if (!is_cover(e)) continue;
        if (!r) {
            r = row_new(&x->tracks, label == NO_INDEX ? text_table_at(&t->tracks, track) : text_table_at(&t->names, label),
                        is_host_category(e->category) ? "host" : "device");
            begin = end = e->begin_ns;
        }
        row_add(r, e);
        call = is_device_work(e->category) ? id_find(calls, call_count, e->correlation) : NO_INDEX;
        if (e->begin_ns > end && is_device_work(e->category)) {
            if (call != NO_INDEX && t->events[call].begin_ns > end) r->host_wait_ns += e->begin_ns - end;
            else if (e->begin_ns - end < 30) r->kernel_wait_ns += e->begin_ns - end;
        }
        if (e->begin_ns + e->ns > end) end = e->begin_ns + e->ns;
        if (call == NO_INDEX) continue;
        changes[change_count].ns = t->events[call].begin_ns;
        changes[change_count++].by = 1;
        changes[change_count].ns = e->begin_ns;
        changes[change_count++].by = -1;
    }
    if (r) {
        r->total_ns = end - begin;
        r->busy_ns = covered_before(x, track, end) - covered_before(x, track, begin);
        measure_queue(r, changes, change_count);
    }
    free(changes);
}
static void table_tracks(trace_tables *x) {
    const trace *t = x->t;
    size_t count;
    id_index *calls = index_events(t, 1, &count);
    for (size_t i = 0, next; i < t->count; i = next) {
        for (next = i; next < t->count && t->events[next].track == t->events[i].track; next++) {}
        table_track(x, i, next, calls, count);
    }
    free(calls);
}
/* Per device: the most that was allocated and reserved, and what was left at the end. */
static void table_memory(trace_tables *x) {
    const trace *t = x->t;
    for (size_t i = 0; i < t->memory_count; i++) {
        const trace_memory *m = &t->memory[i];
        trace_peak *p = &x->peaks[m->device + 1];
        if (!p->changes++) p->allocated = p->reserved = -1;
        if (m->allocated > p->allocated) {
            p->allocated = m->allocated;
            p->at_ns = m->ns;
        }
        if (m->reserved > p->reserved) p->reserved = m->reserved;
        p->left = wrapping_add(p->left, m->bytes);
    }
}
int trace_summarise(trace_tables *x, trace *t, int by_shapes) {
    int code;
    memset(x, 0, sizeof *x);
    x->t = t;
    order_slices(t);
    if (t->memory_count) qsort(t->memory, t->memory_count, sizeof *t->memory, memory_order);
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        if (!i || e->begin_ns < x->first_ns) x->first_ns = e->begin_ns;
        if (!i || e->begin_ns + e->ns > x->last_ns) x->last_ns = e->begin_ns + e->ns;
    }
    if ((code = table_ops(x, by_shapes)) != 0) return code;
    table_covers(x);
    table_names(x, &x->annotations, is_annotation);
    table_names(x, &x->kernels, is_device_work);
    table_launches(x);
    table_tracks(x);
    table_memory(x);
    return 0;
}
void trace_tables_free(trace_tables *x) {
    text_table_free(&x->keys);
    free(x->op_rows);
    free(x->within_ns);
    free(x->covers);
    free(x->cover_start);
    free(x->annotations.items);
    free(x->kernels.items);
    free(x->calls.items);
    free(x->tracks.items);
}
