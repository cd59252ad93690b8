/* journal.c: the journal of a sweep, one line for each run; it makes a sweep that was stopped go on.
 * journal.jsonl, or journal_rank<r>of<w>.jsonl of each of w processes: what was measured, one JSON object a line,
 * appended and never changed.
 *   {"schema", "plan", ...}                    the grid and what it is measured on; again whenever the grid changes
 *   {"session": {...}}                         a start of the engine: where and how, and its cold first request
 *   {"sample", "set", ...}                     what does not depend on the configuration; before the sample's first run
 *   {"config", "sample_id", "run", "prev"...}  one run of a point; prev: place of the point's line before it, -1: none
 *   {"config", "sample_id", "bare", "prev"...} a pair of runs, without and with stage times, outside of the point's statistics
 *   {"config", "sample_id", "done" | "failed", "prev" ...} closes a point
 *   {"kernels": {...}}                         the one run of a shape whose kernels were timed one by one
 *   {"finished": true}                         all points of the grid above are closed
 * Only whole lines count. The book is what reading one or more journals gives: of each point one place, that of its
 * last line. */
#include "sweep/journal.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t JOURNAL_SYNC_NS = INT64_C(2000000000);

static int journal_fail(const journal *j) {
    return complain(EXIT_OUTPUT, "%s cannot be written: %s; what is in it is kept: make room and run the same command again", j->path,
                    strerror(errno));
}
int journal_sync(journal *j) {
    if (!j->unsynced) return 0;
    if (fsync(j->fd)) return journal_fail(j);
    j->unsynced = 0;
    j->synced_ns = vp_clock_ns();
    return 0;
}
int journal_append(journal *j, const char *text, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        ssize_t n = pwrite(j->fd, text + done, bytes - done, (off_t)(j->end + (int64_t)done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            int kept = n ? errno : ENOSPC;
            if (ftruncate(j->fd, (off_t)j->end)) kept = errno; /* the torn line is dropped by the next start */
            errno = kept;
            return journal_fail(j);
        }
        done += (size_t)n;
    }
    j->end += (int64_t)bytes;
    return ++j->unsynced >= JOURNAL_SYNC_LINES || vp_clock_ns() - j->synced_ns >= JOURNAL_SYNC_NS ? journal_sync(j) : 0;
}
vp_json_writer *journal_line_begin(journal *j) {
    j->line.bytes = 0;
    vp_json_writer_init_sink(&j->w, text_sink, &j->line, 0);
    vp_json_begin_object(&j->w);
    return &j->w;
}
int journal_line_end(journal *j) {
    vp_json_end_object(&j->w);
    if (vp_json_finish(&j->w) != VP_OK) return complain(EXIT_WORK, "%s: a line cannot be written as JSON: %s", j->path, vp_result_text(j->w.result));
    text_add(&j->line, "\n", 1);
    return 0;
}
int journal_line_append(journal *j) {
    int code = journal_line_end(j);
    return code ? code : journal_append(j, j->line.data, j->line.bytes);
}
void journal_close(journal *j) {
    if (j->fd >= 0) close(j->fd);
    free(j->path);
    free(j->line.data);
}

void book_free(book *b) {
    for (int32_t i = 0; i < b->file_count; i++) {
        if (b->files[i].is_own && b->files[i].fd >= 0) close(b->files[i].fd);
        free(b->files[i].path);
        free(b->files[i].device);
    }
    for (int32_t i = 0; i < b->set_count; i++) {
        book_set *s = &b->sets[i];
        for (size_t k = 0; k < s->count; k++) { free(s->entries[k]->last); free(s->entries[k]); }
        free((void *)s->entries);
        free(s->task);
        free(s->path);
        free(s->metric);
        free(s->hash);
    }
    for (int32_t i = 0; i < b->cell_count; i++) { free(b->cells[i].file_name); free(b->cells[i].tier); free(b->cells[i].blocks); }
    free(b->model);
    free(b->timing);
    free(b->files);
    free(b->sets);
    free(b->cells);
    free(b->shapes);
    free(b->scratch.nodes);
    free(b->line.data);
    memset(b, 0, sizeof *b);
}
static int32_t book_cell_find(book *b, const vp_json *j, uint32_t name) { /* neighbours in a journal are neighbours in the grid */
    for (int32_t i = 0; i < b->cell_count; i++) {
        int32_t at = (b->cell_hint + i) % b->cell_count;
        if (!vp_json_equals(j, name, b->cells[at].file_name)) continue;
        b->cell_hint = (at + 1) % b->cell_count;
        return at;
    }
    return -1;
}
int32_t book_cell_named(const book *b, const char *file_name) {
    for (int32_t i = 0; i < b->cell_count; i++) if (!strcmp(b->cells[i].file_name, file_name)) return i;
    return -1;
}
/* Place of a sample among entries [first, count), which ascend by id: where it is, or where it would stand. */
static size_t book_place(const book_set *s, size_t first, int64_t id) {
    size_t low = first, high = s->count;
    if (low < high && s->entries[high - 1]->id < id) return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->entries[middle]->id < id) low = middle + 1; else high = middle;
    }
    return low;
}
book_entry *book_find(const book_set *s, size_t first, int64_t id) {
    size_t at = book_place(s, first, id);
    return at < s->count && s->entries[at]->id == id ? s->entries[at] : NULL;
}
static int64_t *entry_last(book_entry *e, const book_cell *c) {
    if (c->place >= e->last_count) {
        e->last = resize(e->last, (size_t)c->place + 1, sizeof *e->last);
        while (e->last_count <= c->place) e->last[e->last_count++] = -1;
    }
    return &e->last[c->place];
}
int64_t book_entry_state(const book_entry *e, const book_cell *c) { return c->place < e->last_count ? e->last[c->place] : -1; }

static int book_take_sets(book *b, const vp_json *j, uint32_t data) {
    uint32_t node = data + 1;
    b->set_count = (int32_t)j->nodes[data].count;
    b->sets = zeroed((size_t)b->set_count, sizeof *b->sets);
    for (int32_t i = 0; i < b->set_count; i++, node = j->nodes[node].end) {
        book_set *s = &b->sets[i];
        s->task = node_text(j, vp_json_get(j, node, "task"));
        s->path = node_text(j, vp_json_get(j, node, "path"));
        s->metric = node_text(j, vp_json_get(j, node, "metric"));
        s->hash = node_text(j, vp_json_get(j, node, "content_hash"));
        s->new_tokens = node_int(j, node, "max_new_tokens", 0);
        s->sample_count = node_int(j, node, "num_samples", -1);
        if (!s->task || !s->path || !s->metric || s->sample_count < 0) return 0;
    }
    return 1;
}
/* A configuration of a head line; one that is known already keeps its first head. */
static int book_take_cell(book *b, const vp_json *j, uint32_t node, int32_t file, int64_t at) {
    int32_t known = book_cell_find(b, j, vp_json_get(j, node, "file_name"));
    uint32_t blocks = vp_json_get(j, node, "active_block_indices"), item;
    int64_t set = node_int(j, node, "set", -1), value = 0;
    book_cell *c;
    if (known >= 0) return b->cells[known].is_wanted = 1;
    if (set < 0 || set >= b->set_count || !node_is(j, blocks, VP_JSON_ARRAY)) return 0;
    b->cells = resize(b->cells, (size_t)b->cell_count + 1, sizeof *b->cells);
    c = &b->cells[b->cell_count];
    memset(c, 0, sizeof *c);
    c->file_name = node_text(j, vp_json_get(j, node, "file_name"));
    if (!c->file_name || strchr(c->file_name, '/') || !strstr(c->file_name, "_imgsize")) { free(c->file_name); return 0; } /* it becomes a path */
    b->cell_count++;
    c->tier = node_text(j, vp_json_get(j, node, "tier"));
    c->set = (int32_t)set;
    c->place = b->sets[set].cell_count++;
    c->vision_tokens = node_int(j, node, "target_vision_tokens", 0);
    c->max_crops = node_int(j, node, "max_crops", 0);
    c->top_k = (int32_t)node_int(j, node, "top_k", 0);
    c->block_count = (int32_t)j->nodes[blocks].count;
    c->blocks = resize(NULL, (size_t)c->block_count, sizeof *c->blocks);
    item = blocks + 1;
    for (int32_t i = 0; i < c->block_count; i++, item = j->nodes[item].end)
        c->blocks[i] = vp_json_to_int(j, item, &value) == VP_OK ? (int32_t)value : -1;
    c->head_file = file;
    c->head_at = at;
    return c->is_wanted = 1;
}
/* A head line: 0 or an exit code. The first one of all says what the book is about. */
static int book_take_head(book *b, int32_t file, int64_t at) {
    const vp_json *j = &b->scratch.json;
    book_file *f = &b->files[file];
    uint32_t data = vp_json_get(j, 0, "data"), configs = vp_json_get(j, 0, "configs"), node;
    char *name = node_text(j, vp_json_get(j, 0, "plan"));
    int good = name && vp_json_equals(j, vp_json_get(j, 0, "schema"), "vlmprof-journal-2") && node_is(j, data, VP_JSON_ARRAY)
            && node_is(j, configs, VP_JSON_ARRAY), same = good && (!b->plan[0] || !strcmp(name, b->plan));
    if (good && same && !b->set_count) {
        snprintf(b->plan, sizeof b->plan, "%s", name);
        b->model = node_text(j, vp_json_get(j, 0, "model"));
        b->timing = node_text(j, vp_json_get(j, 0, "timing"));
        b->synthetic = node_is(j, vp_json_get(j, 0, "synthetic"), VP_JSON_TRUE);
        b->ignore_eos = node_is(j, vp_json_get(j, 0, "ignore_eos"), VP_JSON_TRUE);
        b->run_count = node_int(j, 0, "num_runs_per_sample", 0);
        b->total_blocks = node_int(j, 0, "num_total_blocks", 0);
        b->bare_every = node_int(j, 0, "bare_every", 0);
        good = book_take_sets(b, j, data) && b->model && b->timing;
    }
    free(name);
    if (!good) return complain(EXIT_USAGE, "%s is no journal of this vlmprof: use another --output_dir, or move the file away", f->path);
    if (!same) return complain(EXIT_USAGE, "%s belongs to another plan (other model, data, seed or options): use another --output_dir, "
                                           "or delete it with its results", f->path);
    f->rank = node_int(j, 0, "rank", 0);
    f->world_size = node_int(j, 0, "world_size", 1);
    f->is_finished = 0;
    for (int32_t i = 0; i < b->cell_count; i++) b->cells[i].is_wanted = 0;
    node = configs + 1;
    for (uint32_t i = 0; i < j->nodes[configs].count; i++, node = j->nodes[node].end) good &= book_take_cell(b, j, node, file, at);
    f->grid = 0;
    for (int32_t i = 0; i < b->cell_count; i++) if (b->cells[i].is_wanted) f->grid += hash_text(HASH_START, b->cells[i].file_name);
    return good ? 0 : complain(EXIT_USAGE, "%s: a configuration in its head cannot be read", f->path);
}
static void book_take_sample(book *b, int32_t file, int64_t at, int64_t id) {
    int64_t set = node_int(&b->scratch.json, 0, "set", -1);
    book_set *s;
    book_entry *e;
    size_t spot;
    if (set < 0 || set >= b->set_count) return;
    s = &b->sets[set];
    if ((e = book_find(s, s->first, id)) != NULL) { e->line_at = at; return; }
    if (s->count == s->capacity) {
        s->capacity = s->capacity * 2 + 64;
        s->entries = resize(s->entries, s->capacity, sizeof *s->entries);
    }
    spot = book_place(s, s->first, id);
    memmove((void *)(s->entries + spot + 1), (const void *)(s->entries + spot), (s->count - spot) * sizeof *s->entries);
    e = s->entries[spot] = zeroed(1, sizeof *e);
    s->count++;
    e->id = id;
    e->line_at = at;
    e->file = file;
}
/* A line of a point counts when it follows the point's line before it; else something between is damaged, and the point begins anew. */
static void book_take_point(book *b, int64_t at) {
    const vp_json *j = &b->scratch.json;
    int32_t index = book_cell_find(b, j, vp_json_get(j, 0, "config"));
    book_cell *c = index < 0 ? NULL : &b->cells[index];
    book_set *s = c ? &b->sets[c->set] : NULL;
    book_entry *e = s ? book_find(s, s->first, node_int(j, 0, "sample_id", -1)) : NULL;
    int64_t prev = node_int(j, 0, "prev", -2), *last;
    int state = vp_json_get(j, 0, "done") != VP_JSON_NONE ? POINT_DONE : vp_json_get(j, 0, "failed") != VP_JSON_NONE ? POINT_FAILED : POINT_OPEN;
    if (!e) return;
    last = entry_last(e, c);
    if (*last >= 0) {
        c->closed -= (*last & 3) != POINT_OPEN;
        c->failed -= (*last & 3) == POINT_FAILED;
    }
    if (prev == -1 ? state != POINT_DONE : *last >= 0 && (*last & 3) == POINT_OPEN && *last >> 2 == prev) *last = at * 4 + state;
    else *last = -1;
    if (*last < 0) return;
    c->closed += state != POINT_OPEN;
    c->failed += state == POINT_FAILED;
}
static void book_take_session(book *b, int32_t file, uint32_t node) {
    const vp_json *j = &b->scratch.json;
    book_file *f = &b->files[file];
    free(f->device);
    f->device = node_text(j, vp_json_get(j, node, "device"));
    f->knows_device = f->device != NULL;
    f->on_gpu = f->device && !strncmp(f->device, "cuda", 4);
}
static void book_take_kernels(book *b, int32_t file, int64_t at, uint32_t node) {
    const vp_json *j = &b->scratch.json;
    book_shape *s;
    int32_t index = book_cell_find(b, j, vp_json_get(j, node, "config"));
    if (index < 0) return;
    b->shapes = resize(b->shapes, b->shape_count + 1, sizeof *b->shapes);
    s = &b->shapes[b->shape_count++];
    s->file = file;
    s->cell = index;
    s->at = at;
    s->views = node_int(j, node, "views", 0);
    s->sequence = node_int(j, node, "total_sequence_length", 0);
}
/* Takes over one whole line; 0 or an exit code. A damaged one is named and left out. */
static int book_take(book *b, int32_t file, int64_t at, const char *line, size_t bytes) {
    book_file *f = &b->files[file];
    vp_json *j = &b->scratch.json;
    int64_t id;
    int good = parse_json(&b->scratch, line, bytes, NULL) == VP_OK && node_is(j, 0, VP_JSON_OBJECT);
    f->lines++;
    if (f->lines == 1 && (!good || vp_json_get(j, 0, "plan") == VP_JSON_NONE))
        return complain(EXIT_USAGE, "%s is no journal of this vlmprof: use another --output_dir, or move the file away", f->path);
    if (!good) {
        if (b->damaged++ < 2) complain(0, "%s: line %lld (byte %lld) is damaged and left out; its point is measured again", f->path,
                                       (long long)f->lines, (long long)at);
        return 0;
    }
    if (vp_json_get(j, 0, "plan") != VP_JSON_NONE) return book_take_head(b, file, at);
    if (vp_json_get(j, 0, "config") != VP_JSON_NONE) book_take_point(b, at);
    else if ((id = node_int(j, 0, "sample", -1)) >= 0) book_take_sample(b, file, at, id);
    else if (node_is(j, vp_json_get(j, 0, "session"), VP_JSON_OBJECT)) book_take_session(b, file, vp_json_get(j, 0, "session"));
    else if (vp_json_get(j, 0, "kernels") != VP_JSON_NONE) book_take_kernels(b, file, at, vp_json_get(j, 0, "kernels"));
    else if (vp_json_get(j, 0, "finished") != VP_JSON_NONE) f->is_finished = 1;
    return 0;
}
static int compare_entries(const void *a, const void *b) {
    const book_entry *x = *(book_entry *const *)a, *y = *(book_entry *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}
int book_read(book *b, const char *path, int fd, int is_own) {
    book_file *f;
    source s = {path, fd, NULL, 0};
    text_buffer t = {NULL, 0, 0};
    int64_t base = 0; /* place of t.data[0] */
    size_t seen = 0;
    int code = 0;
    ssize_t n = 0;
    b->files = resize(b->files, (size_t)b->file_count + 1, sizeof *b->files);
    f = &b->files[b->file_count++];
    memset(f, 0, sizeof *f);
    f->path = copy_text(path, strlen(path));
    f->fd = fd;
    f->is_own = is_own;
    for (int32_t i = 0; i < b->set_count; i++) b->sets[i].first = b->sets[i].count;
    while (!code) {
        char *end = t.bytes > seen ? memchr(t.data + seen, '\n', t.bytes - seen) : NULL;
        char piece[65536];
        if (end) {
            size_t start = (size_t)(f->end - base), bytes = (size_t)(end - t.data) - start;
            code = book_take(b, b->file_count - 1, f->end, t.data + start, bytes);
            f = &b->files[b->file_count - 1];
            seen = start + bytes + 1;
            f->end = base + (int64_t)seen;
            continue;
        }
        memmove(t.data ? t.data : piece, t.data ? t.data + (f->end - base) : piece, t.bytes - (size_t)(f->end - base)); /* the begun line */
        t.bytes -= (size_t)(f->end - base);
        base = f->end;
        seen = t.bytes;
        if ((n = source_read(&s, base + (int64_t)t.bytes, piece, sizeof piece)) <= 0) break;
        text_add(&t, piece, (size_t)n);
    }
    if (n < 0) code = complain(EXIT_OUTPUT, "%s cannot be read: %s", path, strerror(errno)); /* what is not read must not be cut off */
    free(t.data);
    if (b->damaged > 2) complain(0, "%s: %lld damaged lines in all", path, (long long)b->damaged);
    b->damaged = 0;
    return code;
}
int book_sort(book *b) {
    for (int32_t i = 0; i < b->set_count; i++) {
        book_set *s = &b->sets[i];
        if (s->count) qsort(s->entries, s->count, sizeof *s->entries, compare_entries);
        s->first = 0;
        for (size_t k = 1; k < s->count; k++)
            if (s->entries[k]->id == s->entries[k - 1]->id)
                return complain(EXIT_USAGE, "%s and %s both hold sample %lld of %s: they are no parts of one sweep",
                                b->files[s->entries[k - 1]->file].path, b->files[s->entries[k]->file].path, (long long)s->entries[k]->id, s->task);
    }
    return 0;
}
int book_line(book *b, int32_t file, int64_t at) {
    const book_file *f = &b->files[file];
    source s = {f->path, f->fd, NULL, 0};
    b->line.bytes = 0;
    for (;;) {
        char piece[16384];
        ssize_t n = source_read(&s, at + (int64_t)b->line.bytes, piece, sizeof piece);
        const char *end = n > 0 ? memchr(piece, '\n', (size_t)n) : NULL;
        if (n <= 0) break;
        text_add(&b->line, piece, end ? (size_t)(end - piece) : (size_t)n);
        if (end && parse_json(&b->scratch, b->line.data, b->line.bytes, NULL) == VP_OK) return 0;
        if (end) break;
    }
    return complain(EXIT_OUTPUT, "%s cannot be read back at byte %lld", f->path, (long long)at);
}

/* ---- a journal that this process writes */
char *journal_name(const char *folder, int64_t rank, int64_t world_size) {
    char name[80];
    if (world_size > 1) snprintf(name, sizeof name, "journal_rank%lldof%lld.jsonl", (long long)rank, (long long)world_size);
    else snprintf(name, sizeof name, "journal.jsonl");
    return join_path(folder, name);
}
int journal_lock(int fd, int wait) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    while (fcntl(fd, wait ? F_SETLKW : F_SETLK, &lock)) {
        if (errno == EINTR && !interrupted) continue;
        return errno == EACCES || errno == EAGAIN || errno == EINTR;
    }
    return 0; /* a file system without locks: nothing can be said */
}
int journal_is_locked(int fd) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
int journal_open(journal *j, book *b) {
    int code;
    j->fd = open(j->path, O_RDWR | O_CREAT, 0666);
    if (j->fd < 0) return complain(EXIT_OUTPUT, "%s cannot be opened: %s", j->path, strerror(errno));
    if (journal_lock(j->fd, 0)) return complain(EXIT_USAGE, "%s: another sweep is writing to this folder", j->path);
    if ((code = book_read(b, j->path, j->fd, 0)) != 0 || (code = book_sort(b)) != 0) return code;
    j->end = b->files[0].end;
    j->synced_ns = vp_clock_ns();
    return ftruncate(j->fd, (off_t)j->end) ? journal_fail(j) : 0;
}
