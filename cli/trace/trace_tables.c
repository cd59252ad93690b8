/* trace_tables.c: makes tables of the events of a trace.
 * Operations follow torch.profiler's key_averages():
 * - A slice of a host thread is a child of the innermost slice of that thread that encloses it.
 * - Self time is the time that no inner slice covers.
 * - A slice that is the only child of another with the same name is counted as that one.
 * - Device time is the time of the kernels with the operation's "External id". A kernel without an id belongs to the
 *   operation that contains its launch.
 * There is one difference. If slices of a thread overlap without nesting, torch counts their common time twice in the
 * slice around them. Here it counts once, so that self time is never negative. */
#include "trace/trace_tables.h"

#include "base/console.h"
#include "base/memory.h"
#include "base/options.h"

/* ---- operations: their nesting, and the device time of each */
struct host_op {
    uint32_t event, parent, children;  /* parent: an operation, or NO_INDEX; children: number of direct children */
    uint32_t key;                      /* its row: index into tables->keys */
    int64_t covered_ns, covered_end;   /* covered by inner slices: time, and end of the last */
    int64_t own_device_ns, device_ns;  /* time of its own launches; including those of inner operations */
    int64_t bytes[2], within_bytes[2]; /* memory of [CPU, devices]: during it; during its direct children */
    uint32_t alias;                    /* the operation that this one is counted as, or NO_INDEX */
    int is_nested_in_own;              /* 1 if within another one with the same key */
};
struct id_index { int64_t id; uint32_t process, index; };
static const uint32_t ANY_PROCESS = UINT32_MAX, SEVERAL = NO_INDEX - 1;

static int id_order(const void *left_item, const void *right_item) {
    const struct id_index *left = left_item, *right = right_item;
    if (left->id != right->id) return left->id < right->id ? -1 : 1;
    if (left->process != right->process) return left->process < right->process ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}
/* The first event with an id in a process. For ANY_PROCESS: SEVERAL if it is in several. NO_INDEX: none. */
static uint32_t id_find(const struct id_index *ids, size_t count, int64_t id, uint32_t process) {
    size_t low = 0, high = count;
    if (id <= 0) return NO_INDEX;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct id_index *at = &ids[middle];
        if (at->id < id || (at->id == id && process != ANY_PROCESS && at->process < process)) low = middle + 1;
        else high = middle;
    }
    if (low >= count || ids[low].id != id || (process != ANY_PROCESS && ids[low].process != process)) return NO_INDEX;
    for (size_t i = low + 1; process == ANY_PROCESS && i < count && ids[i].id == id; i++)
        if (ids[i].process != ids[low].process) return SEVERAL;
    return ids[low].index;
}
/* By track and start. Of two slices with the same start, the longer one comes first: the outer before the inner one. */
static int slice_order(const void *left_item, const void *right_item) {
    const struct trace_event *left = left_item, *right = right_item;
    if (left->track != right->track) return left->track < right->track ? -1 : 1;
    if (left->begin_ns != right->begin_ns) return left->begin_ns < right->begin_ns ? -1 : 1;
    if (left->ns != right->ns) return left->ns > right->ns ? -1 : 1;
    return (left->order > right->order) - (left->order < right->order);
}
/* Returns 1 for one of torch's own helpers, which its tables leave out. */
static int is_hidden(const char *name) {
    return has_word("profiler::_record_function_enter profiler::_record_function_enter_new "
                    "profiler::_record_function_exit aten::is_leaf aten::output_nr aten::_version", name);
}
/* Events sorted by id, for id_find: launching calls by correlation, or operations and annotations by "External id".
 * malloc'ed, *count long. */
static struct id_index *index_events(const struct trace *trace, int by_correlation, size_t *count) {
    struct id_index *ids = resize(NULL, trace->count, sizeof *ids);
    *count = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_event *event = &trace->events[i];
        int64_t id = by_correlation ? event->correlation : event->external;
        if (id <= 0
            || (by_correlation ? event->category != TRACE_RUNTIME
                               : event->category != TRACE_OP && event->category != TRACE_USER))
            continue;
        if (!by_correlation && is_hidden(text_table_at(&trace->names, event->name))) continue;
        ids[(*count)++] = (struct id_index){id, event->process, (uint32_t)i};
    }
    qsort(ids, *count, sizeof *ids, id_order);
    return ids;
}
/* Moves each runtime call to the thread of its operation, as torch does. Then sorts all slices into their final
 * order. */
static void order_slices(struct trace *trace) {
    size_t count;
    struct id_index *ids = index_events(trace, 0, &count);
    for (size_t i = 0; i < trace->count; i++) {
        uint32_t owner = trace->events[i].category == TRACE_RUNTIME
                             ? id_find(ids, count, trace->events[i].external, trace->events[i].process)
                             : NO_INDEX;
        if (owner != NO_INDEX) trace->events[i].track = trace->events[owner].track;
    }
    free(ids);
    if (trace->count) qsort(trace->events, trace->count, sizeof *trace->events, slice_order);
}
/* The key of an event's row: its name, and its shapes if rows are by shapes. */
static uint32_t key_of(struct trace_tables *tables, const struct trace_event *event, int by_shapes) {
    char text[32];
    snprintf(text, sizeof text, "%lu %lu", (unsigned long)event->name,
             (unsigned long)(by_shapes ? event->shapes : NO_INDEX));
    return text_table_add(&tables->keys, text);
}
/* Makes operations of the host slices, in the order of the slices: a parent comes before its children. malloc'ed. */
static struct host_op *collect_ops(struct trace_tables *tables, int by_shapes, size_t *count) {
    const struct trace *trace = tables->trace;
    struct host_op *ops = zeroed(trace->count, sizeof *ops);
    *count = 0;
    for (size_t i = 0; i < trace->count; i++) {
        struct host_op *op = &ops[*count];
        if (trace->events[i].category > TRACE_OVERHEAD
            || is_hidden(text_table_at(&trace->names, trace->events[i].name)))
            continue;
        op->event = (uint32_t)i;
        op->parent = op->alias = NO_INDEX;
        op->key = key_of(tables, &trace->events[i], by_shapes);
        op->covered_end = trace->events[i].begin_ns;
        (*count)++;
    }
    return ops;
}
/* Adds a slice's time to the covered time of its parent. Slices are sorted by start. */
static void cover_parent(struct host_op *op, const struct trace_event *event) {
    int64_t begin = event->begin_ns > op->covered_end ? event->begin_ns : op->covered_end,
            end = event->begin_ns + event->ns;
    op->children++;
    if (end <= begin) return;
    op->covered_ns += end - begin;
    op->covered_end = end;
}
/* Finds each operation's parent, with a stack of the open operations of the track. */
static void nest_ops(struct trace_tables *tables, struct host_op *ops, size_t count) {
    const struct trace_event *events = tables->trace->events;
    uint32_t *stack = resize(NULL, count, sizeof *stack);
    uint32_t *open_count = zeroed(tables->keys.count + 1, sizeof *open_count); /* open ones per key */
    size_t depth = 0;
    for (size_t i = 0; i < count; i++) {
        const struct trace_event *event = &events[ops[i].event];
        if (event->category == TRACE_OVERHEAD) continue;
        for (; depth; depth--) {
            const struct trace_event *outer = &events[ops[stack[depth - 1]].event];
            int64_t end = outer->begin_ns + outer->ns;
            if (outer->track == event->track && event->begin_ns < end && event->begin_ns + event->ns <= end) break;
            tables->overlaps += outer->track == event->track && event->begin_ns < end;
            open_count[ops[stack[depth - 1]].key]--;
        }
        if (depth) {
            ops[i].parent = stack[depth - 1];
            cover_parent(&ops[stack[depth - 1]], event);
        }
        ops[i].is_nested_in_own = open_count[ops[i].key]++ > 0;
        stack[depth++] = (uint32_t)i;
    }
    FREE_ALL(stack, open_count);
}
/* The process of the host that launches the work of each process: devices have pids of their own. Merged traces of
 * several ranks repeat the ids; a device belongs to the process that alone has most of its ids, or whose pid begins
 * alike up to its last blank ("[TP01] 83" and "[TP01] 0"). ANY_PROCESS: not known. malloc'ed. */
static uint32_t *find_launchers(const struct trace *trace, const struct id_index *calls, size_t count) {
    const size_t processes = trace->processes.count;
    uint32_t *launcher = resize(NULL, processes + 1, sizeof *launcher);
    int64_t *votes = zeroed(processes + 1, sizeof *votes);
    memset(launcher, 0xff, (processes + 1) * sizeof *launcher);
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_event *event = &trace->events[i];
        if (!is_device_work(event->category)) continue;
        const uint32_t call = id_find(calls, count, event->correlation, ANY_PROCESS);
        if (call >= SEVERAL) continue;
        const uint32_t host = trace->events[call].process;
        uint32_t *at = &launcher[event->process];
        if (*at == host) votes[event->process]++; /* the majority, if there is one */
        else if (--votes[event->process] < 0) { *at = host; votes[event->process] = 1; }
    }
    for (uint32_t device = 0; device < processes; device++) {
        const char *text = text_table_at(&trace->processes, device), *blank = strrchr(text, ' ');
        for (size_t i = 0; blank && launcher[device] == ANY_PROCESS && i < count; i++) {
            const char *host = text_table_at(&trace->processes, calls[i].process);
            if (!strncmp(host, text, (size_t)(blank - text) + 1)) launcher[device] = calls[i].process;
        }
    }
    free(votes);
    return launcher;
}
/* The event with this id; if several processes have one, that of the process which launches the work of `process`. */
static uint32_t find_of(const struct trace_tables *tables, const struct id_index *ids, size_t count, int64_t id,
                        uint32_t process) {
    const uint32_t found = id_find(ids, count, id, ANY_PROCESS), host = tables->launches.launcher[process];
    return found != SEVERAL || host == ANY_PROCESS ? found : id_find(ids, count, id, host);
}
/* The launching call of a device slice, or NO_INDEX. */
static uint32_t launch_find(const struct trace_tables *tables, const struct trace_event *event) {
    const struct trace_launches *launches = &tables->launches;
    const uint32_t call = find_of(tables, launches->calls, launches->count, event->correlation, event->process);
    return call == SEVERAL ? NO_INDEX : call;
}
/* Adds each device slice's time to the operation that launched it. */
static void charge_device(struct trace_tables *tables, struct host_op *ops, size_t count) {
    const struct trace *trace = tables->trace;
    size_t external_count;
    struct id_index *external = index_events(trace, 0, &external_count);
    uint32_t *op_of = resize(NULL, trace->count, sizeof *op_of);
    memset(op_of, 0xff, trace->count * sizeof *op_of);
    for (size_t i = 0; i < count; i++) op_of[ops[i].event] = (uint32_t)i;
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_event *event = &trace->events[i];
        if (!is_device_work(event->category)) continue;
        uint32_t owner = find_of(tables, external, external_count, event->external, event->process), call = NO_INDEX;
        if (owner >= SEVERAL)
            call = find_of(tables, tables->launches.calls, tables->launches.count, event->correlation, event->process);
        tables->repeated_ids += owner >= SEVERAL && call >= SEVERAL && (owner == SEVERAL || call == SEVERAL);
        if (owner >= SEVERAL) owner = call;
        if (owner >= SEVERAL || (owner = op_of[owner]) == NO_INDEX) {
            tables->unowned_ns += event->ns;
            tables->unowned++;
            continue;
        }
        if (trace->events[ops[owner].event].category == TRACE_RUNTIME && ops[owner].parent != NO_INDEX)
            owner = ops[owner].parent;
        ops[owner].own_device_ns += event->ns;
    }
    FREE_ALL(external, op_of);
}
COMPARE_BY(memory_order, struct trace_memory, ns)
/* The number of records earlier than a time. */
static size_t memory_before(const struct trace *trace, int64_t ns) {
    size_t low = 0, high = trace->memory_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trace->memory[middle].ns < ns) low = middle + 1; else high = middle;
    }
    return low;
}
/* Sums of bytes must not overflow, even for a hostile file. */
static int64_t wrapping_add(int64_t first, int64_t second) { return (int64_t)((uint64_t)first + (uint64_t)second); }
/* What belongs to no operation. Of [CPU, devices]: times and bytes of memory. */
struct rest {
    int64_t calls, ns[2], bytes[2];
};
/* Adds up the memory that was allocated and freed during each operation, on any thread, as torch counts it. Returns
 * that outside of all operations. */
static struct rest charge_memory(const struct trace_tables *tables, struct host_op *ops, size_t count) {
    struct rest lone = {0};
    const struct trace *trace = tables->trace;
    int64_t(*sums)[2] = (int64_t(*)[2])zeroed(trace->memory_count + 1, sizeof *sums);
    int64_t *covered = zeroed(trace->memory_count + 1, sizeof *covered);
    for (size_t i = 0; i < trace->memory_count; i++)
        for (int k = 0; k < 2; k++)
            sums[i + 1][k] = wrapping_add(sums[i][k], (trace->memory[i].type != 0) == k ? trace->memory[i].bytes : 0);
    for (size_t i = 0; i < count; i++) {
        const struct trace_event *event = &trace->events[ops[i].event];
        size_t first = memory_before(trace, event->begin_ns),
               last = memory_before(trace, event->begin_ns + event->ns + 1);
        covered[first]++;
        covered[last]--;
        for (int k = 0; k < 2; k++) ops[i].bytes[k] = wrapping_add(sums[last][k], -sums[first][k]);
    }
    for (size_t i = 0; i < trace->memory_count; i++) {
        if (i) covered[i] += covered[i - 1];
        if (covered[i]) continue;
        lone.calls++;
        lone.bytes[trace->memory[i].type != 0] =
            wrapping_add(lone.bytes[trace->memory[i].type != 0], trace->memory[i].bytes);
    }
    FREE_ALL(sums, covered);
    return lone;
}
/* If a slice is the only child of another with the same name, both become one (torch's _remove_dup_nodes). */
static void merge_repeats(struct trace_tables *tables, struct host_op *ops, size_t count) {
    const struct trace_event *events = tables->trace->events;
    for (size_t i = 0; i < count; i++) {
        if (ops[i].parent == NO_INDEX) continue;
        if (ops[ops[i].parent].alias != NO_INDEX) ops[i].parent = ops[ops[i].parent].alias;
        struct host_op *op = &ops[ops[i].parent];
        if (op->children != 1 || events[op->event].name != events[ops[i].event].name) continue;
        op->children = ops[i].children;
        op->covered_ns = ops[i].covered_ns;
        op->own_device_ns = ops[i].own_device_ns;
        ops[i].alias = ops[i].parent;
    }
}
int trace_ops_code(const struct trace_tables *tables, vp_result result) {
    return result == VP_OK ? 0
                           : complain(exit_code_of(result) == EXIT_USAGE ? EXIT_INPUT : exit_code_of(result),
                                      "%s: the table of operations: %s", tables->trace->path, vp_result_text(result));
}
static vp_result add_op(struct trace_tables *tables, const struct host_op *op) {
    const struct trace *trace = tables->trace;
    const struct trace_event *event = &trace->events[op->event];
    vp_op added = vp_op_default();
    added.name = text_table_at(&trace->names, event->name);
    if (tables->ops.group_by & VP_OPS_BY_SHAPE)
        added.shapes = event->shapes == NO_INDEX ? "[]" : text_table_at(&trace->names, event->shapes);
    added.primitive_calls = !op->is_nested_in_own;
    added.host_total_ns = event->ns;
    added.host_self_ns = event->ns - op->covered_ns;
    added.device_total_ns = op->device_ns;
    added.device_self_ns = op->own_device_ns;
    added.host_memory_bytes = op->bytes[0];
    added.host_self_memory_bytes = wrapping_add(op->bytes[0], -op->within_bytes[0]);
    added.device_memory_bytes = op->bytes[1];
    added.device_self_memory_bytes = wrapping_add(op->bytes[1], -op->within_bytes[1]);
    return vp_ops_add(&tables->ops, &added);
}
/* Adds a row for what belongs to no operation, so that the totals count it. */
static vp_result add_rest(struct trace_tables *tables, const char *name, struct rest rest) {
    vp_op op = vp_op_default();
    if (!rest.calls) return VP_OK;
    op.name = name;
    op.calls = op.primitive_calls = rest.calls;
    op.host_total_ns = op.host_self_ns = rest.ns[0];
    op.device_total_ns = op.device_self_ns = rest.ns[1];
    op.host_memory_bytes = op.host_self_memory_bytes = rest.bytes[0];
    op.device_memory_bytes = op.device_self_memory_bytes = rest.bytes[1];
    return vp_ops_add(&tables->ops, &op);
}
/* Adds the children's device time and memory to their parent. */
static void sum_within(struct host_op *ops, size_t count) {
    for (size_t i = count; i-- > 0;) { /* begins with the innermost */
        if (ops[i].alias != NO_INDEX) continue;
        ops[i].device_ns += ops[i].own_device_ns;
        if (ops[i].parent == NO_INDEX) continue;
        struct host_op *parent = &ops[ops[i].parent];
        parent->device_ns += ops[i].device_ns;
        for (int k = 0; k < 2; k++) parent->within_bytes[k] = wrapping_add(parent->within_bytes[k], ops[i].bytes[k]);
    }
}
/* Writes the rows of tables->ops. */
static vp_result add_ops(struct trace_tables *tables, const struct host_op *ops, size_t count, int by_shapes,
                         struct rest lone) {
    const int64_t capacity = (int64_t)tables->keys.count + 3;
    struct rest python = {0};
    tables->op_rows = resize(NULL, (size_t)capacity, sizeof *tables->op_rows);
    vp_result result = vp_ops_init(&tables->ops, tables->op_rows, capacity, by_shapes ? VP_OPS_BY_SHAPE : 0, 0);
    for (size_t i = 0; i < count && result == VP_OK; i++) {
        const struct trace_event *event = &tables->trace->events[ops[i].event];
        if (ops[i].alias != NO_INDEX) continue;
        if (event->category != TRACE_PYTHON) result = add_op(tables, &ops[i]);
        else {
            python.calls++;
            python.ns[0] += event->ns - ops[i].covered_ns;
        }
    }
    if (result == VP_OK) result = add_rest(tables, "[memory]", lone);
    if (result == VP_OK) result = add_rest(tables, "[Python frames]", python);
    const struct rest unowned = {tables->unowned, {0, tables->unowned_ns}, {0, 0}};
    return result == VP_OK ? add_rest(tables, "[device work outside any operation]", unowned) : result;
}
/* Makes the table of operations. Returns 0 or an exit code. */
static int table_ops(struct trace_tables *tables, int by_shapes) {
    size_t count;
    struct host_op *ops = collect_ops(tables, by_shapes, &count);
    int code;
    nest_ops(tables, ops, count);
    charge_device(tables, ops, count);
    const struct rest lone = charge_memory(tables, ops, count);
    merge_repeats(tables, ops, count);
    sum_within(ops, count);
    if (tables->keys.count >= TRACE_ROWS_MAX)
        code = complain(EXIT_INPUT, "%s: more than %d different operations: this does not look like a trace of a "
                                    "program",
                        tables->trace->path, TRACE_ROWS_MAX);
    else {
        tables->within_ns = zeroed(tables->trace->count, sizeof *tables->within_ns);
        for (size_t i = 0; i < count; i++) tables->within_ns[ops[i].event] = ops[i].covered_ns;
        code = trace_ops_code(tables, add_ops(tables, ops, count, by_shapes, lone));
    }
    free(ops);
    return code;
}

/* ---- devices: covered time of a track, kernels, launches, streams */
/* Returns 1 if the slice covers its track; annotations and Python's frames only enclose others. */
static int is_cover(const struct trace_event *event) {
    return !is_annotation(event->category) && event->category != TRACE_PYTHON;
}
/* Joins the slices of each track into stretches without a gap. */
static void table_covers(struct trace_tables *tables) {
    const struct trace *trace = tables->trace;
    size_t count = 0;
    uint32_t track = 0;
    tables->covers = resize(NULL, trace->count, sizeof *tables->covers);
    tables->cover_start = zeroed((size_t)trace->tracks.count + 1, sizeof *tables->cover_start);
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_event *event = &trace->events[i];
        int64_t end = event->begin_ns + event->ns;
        struct cover *last = count ? &tables->covers[count - 1] : NULL;
        if (!is_cover(event)) continue;
        while (track < event->track) tables->cover_start[++track] = count;
        if (count > tables->cover_start[track] && event->begin_ns <= last->end) {
            if (end > last->end) last->end = end;
            continue;
        }
        tables->covers[count].before =
            count > tables->cover_start[track] ? last->before + (last->end - last->begin) : 0;
        tables->covers[count].begin = event->begin_ns;
        tables->covers[count++].end = end;
    }
    while (track < trace->tracks.count) tables->cover_start[++track] = count;
}
/* The time of a track that is covered before `ns`. */
static int64_t covered_before(const struct trace_tables *tables, uint32_t track, int64_t ns) {
    size_t first = tables->cover_start[track], low = first, high = tables->cover_start[track + 1];
    while (low < high) { /* the first one that starts at ns or later */
        size_t middle = low + (high - low) / 2;
        if (tables->covers[middle].begin < ns) low = middle + 1; else high = middle;
    }
    if (low == first) return 0;
    const struct cover *cover = &tables->covers[low - 1];
    return cover->before + ((ns < cover->end ? ns : cover->end) - cover->begin);
}
static struct trace_row *row_new(struct trace_rows *rows, const char *name, const char *where) {
    struct trace_row *row = ADDED(rows->items, rows->count);
    *row = (struct trace_row){.name = name, .where = where, .min_ns = INT64_MAX};
    return row;
}
static void row_add(struct trace_row *row, const struct trace_event *event) {
    row->calls++;
    row->total_ns += event->ns;
    row->bytes = wrapping_add(row->bytes, event->bytes);
    if (event->ns < row->min_ns) row->min_ns = event->ns;
    if (event->ns > row->max_ns) row->max_ns = event->ns;
}
static int total_order(const void *left_item, const void *right_item) {
    const struct trace_row *left = left_item, *right = right_item;
    if (left->total_ns != right->total_ns) return left->total_ns > right->total_ns ? -1 : 1;
    return strcmp(left->name, right->name);
}
/* Makes rows by name, for slices of the categories that `which` accepts. Host and device have separate rows. */
static void table_names(struct trace_tables *tables, struct trace_rows *rows, int (*which)(int category)) {
    const struct trace *trace = tables->trace;
    uint32_t *row_of = resize(NULL, (size_t)trace->names.count * 2 + 1, sizeof *row_of);
    memset(row_of, 0xff, (size_t)trace->names.count * 2 * sizeof *row_of);
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_event *event = &trace->events[i];
        int on_device = !is_host_category(event->category);
        uint32_t *at = &row_of[(size_t)event->name * 2 + (size_t)on_device];
        if (!which(event->category)) continue;
        if (*at == NO_INDEX) {
            *at = (uint32_t)rows->count;
            row_new(rows, text_table_at(&trace->names, event->name), on_device ? "device" : "host");
        }
        row_add(&rows->items[*at], event);
        if (event->category == TRACE_USER) rows->items[*at].busy_ns += tables->within_ns[i];
        else if (event->category == TRACE_DEVICE_USER)
            rows->items[*at].busy_ns += covered_before(tables, event->track, event->begin_ns + event->ns)
                                        - covered_before(tables, event->track, event->begin_ns);
    }
    free(row_of);
    if (rows->count) qsort(rows->items, rows->count, sizeof *rows->items, total_order);
}
static int is_runtime_call(int category) { return category == TRACE_RUNTIME; }
/* Makes the rows of launching calls, and the time from the end of a call to the start on the device. That is HTA's
 * launch delay, but not clamped at 0. */
static void table_launches(struct trace_tables *tables) {
    const struct trace *trace = tables->trace;
    size_t delays = 0;
    double *delay = resize(NULL, trace->count, sizeof *delay);
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_event *event = &trace->events[i];
        if (!is_device_work(event->category)) continue;
        tables->kernel_ns += event->ns;
        const uint32_t call = launch_find(tables, event);
        if (call == NO_INDEX) { tables->unlaunched++; continue; }
        delay[delays++] = (double)(event->begin_ns - trace->events[call].begin_ns - trace->events[call].ns) / 1e3;
    }
    tables->launched = (int64_t)delays;
    if (delays) vp_statistics_compute(delay, delays, delay, &tables->delay);
    free(delay);
    table_names(tables, &tables->calls, is_runtime_call);
}
/* HTA's consecutive_kernel_delay. Its documentation says 30 ns, but its code compares 30 with a difference of two ts,
 * which are in us. We follow the code: the numbers are then HTA's, and a device needs about 1 us between two
 * kernels. */
enum { KERNEL_GAP_NS = 30000 };
/* Computes a stream's queue, as HTA's queue length: it grows by one when a launching call starts, and shrinks by one
 * when the device starts the work. */
struct queue_change { int64_t ns; int by; };
static int change_order(const void *left_item, const void *right_item) {
    const struct queue_change *left = left_item, *right = right_item;
    if (left->ns != right->ns) return left->ns < right->ns ? -1 : 1;
    return right->by - left->by;
}
static void measure_queue(struct trace_row *row, struct queue_change *changes, size_t count) {
    double area = 0;
    int64_t length = 0;
    if (!count) return;
    qsort(changes, count, sizeof *changes, change_order);
    for (size_t i = 0; i < count; i++) {
        if (i) area += (double)length * (double)(changes[i].ns - changes[i - 1].ns);
        length += changes[i].by;
        if (length > row->queue_most) row->queue_most = length;
    }
    if (changes[count - 1].ns > changes[0].ns) row->queue_mean = area / (double)(changes[count - 1].ns - changes[0].ns);
}
/* Makes the row of one track, whose slices are first to last - 1, in order of their start. As in HTA, a gap is the
 * host's if the next slice was launched after the gap began. Otherwise it is the device's own if it is below
 * KERNEL_GAP_NS. */
static void table_track(struct trace_tables *tables, size_t first, size_t last) {
    const struct trace *trace = tables->trace;
    uint32_t track = trace->events[first].track, label = trace->labels[track];
    struct queue_change *changes = resize(NULL, (last - first) * 2, sizeof *changes);
    size_t change_count = 0;
    int64_t end = 0, begin = 0;
    struct trace_row *row = NULL;
    for (size_t i = first; i < last; i++) {
        const struct trace_event *event = &trace->events[i];
        if (!is_cover(event)) continue;
        if (!row) {
            row =
                row_new(&tables->tracks,
                        label == NO_INDEX ? text_table_at(&trace->tracks, track) : text_table_at(&trace->names, label),
                        is_host_category(event->category) ? "host" : "device");
            begin = end = event->begin_ns;
        }
        row_add(row, event);
        uint32_t call = is_device_work(event->category) ? launch_find(tables, event) : NO_INDEX;
        if (event->begin_ns > end && is_device_work(event->category)) {
            if (call != NO_INDEX && trace->events[call].begin_ns > end) row->host_wait_ns += event->begin_ns - end;
            else if (event->begin_ns - end < KERNEL_GAP_NS) row->kernel_wait_ns += event->begin_ns - end;
        }
        if (event->begin_ns + event->ns > end) end = event->begin_ns + event->ns;
        if (call == NO_INDEX) continue;
        changes[change_count].ns = trace->events[call].begin_ns;
        changes[change_count++].by = 1;
        changes[change_count].ns = event->begin_ns;
        changes[change_count++].by = -1;
    }
    if (row) {
        row->total_ns = end - begin;
        row->busy_ns = covered_before(tables, track, end) - covered_before(tables, track, begin);
        measure_queue(row, changes, change_count);
    }
    free(changes);
}
static void table_tracks(struct trace_tables *tables) {
    const struct trace *trace = tables->trace;
    for (size_t i = 0, next; i < trace->count; i = next) {
        for (next = i; next < trace->count && trace->events[next].track == trace->events[i].track; next++) {}
        table_track(tables, i, next);
    }
}
/* The row of a device's memory. */
static struct trace_peak *peak_of(struct trace_tables *tables, const struct trace_memory *memory) {
    for (size_t i = 0; i < tables->peak_count; i++)
        if (tables->peaks[i].type == memory->type && tables->peaks[i].device == memory->device)
            return &tables->peaks[i];
    struct trace_peak *peak = ADDED(tables->peaks, tables->peak_count);
    *peak = (struct trace_peak){.type = memory->type, .device = memory->device, .allocated = -1, .reserved = -1};
    return peak;
}
static int peak_order(const void *left_item, const void *right_item) {
    const struct trace_peak *left = left_item, *right = right_item;
    return left->type != right->type ? left->type - right->type : left->device - right->device;
}
/* Finds the maximum memory allocated and reserved on each device, and the remainder at the end. */
static void table_memory(struct trace_tables *tables) {
    const struct trace *trace = tables->trace;
    for (size_t i = 0; i < trace->memory_count; i++) {
        const struct trace_memory *memory = &trace->memory[i];
        struct trace_peak *peak = peak_of(tables, memory);
        peak->changes++;
        if (memory->allocated > peak->allocated) {
            peak->allocated = memory->allocated;
            peak->at_ns = memory->ns;
        }
        if (memory->reserved > peak->reserved) peak->reserved = memory->reserved;
        peak->left = wrapping_add(peak->left, memory->bytes);
    }
    if (tables->peak_count) qsort(tables->peaks, tables->peak_count, sizeof *tables->peaks, peak_order);
}
int trace_summarise(struct trace_tables *tables, struct trace *trace, int by_shapes) {
    int code;
    memset(tables, 0, sizeof *tables);
    tables->trace = trace;
    order_slices(trace);
    tables->launches.calls = index_events(trace, 1, &tables->launches.count);
    tables->launches.launcher = find_launchers(trace, tables->launches.calls, tables->launches.count);
    if (trace->memory_count) qsort(trace->memory, trace->memory_count, sizeof *trace->memory, memory_order);
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_event *event = &trace->events[i];
        if (!i || event->begin_ns < tables->first_ns) tables->first_ns = event->begin_ns;
        if (!i || event->begin_ns + event->ns > tables->last_ns) tables->last_ns = event->begin_ns + event->ns;
    }
    if ((code = table_ops(tables, by_shapes)) != 0) return code;
    table_covers(tables);
    table_names(tables, &tables->annotations, is_annotation);
    table_names(tables, &tables->kernels, is_device_work);
    table_launches(tables);
    table_tracks(tables);
    table_memory(tables);
    return 0;
}
void trace_tables_free(struct trace_tables *tables) {
    text_table_free(&tables->keys);
    FREE_ALL(tables->op_rows, tables->within_ns, tables->covers, tables->cover_start, tables->annotations.items,
             tables->kernels.items, tables->calls.items, tables->tracks.items, tables->launches.calls,
             tables->launches.launcher, tables->peaks);
}
