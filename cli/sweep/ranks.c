/* ranks.c: the journals of a sweep's processes, wherever they lie, and their merging. */
#include "sweep/ranks.h"

#include "base/console.h"
#include "base/files.h"
#include "base/memory.h"
#include "vlmprof.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int parse_journal_name(const char *name, int64_t *rank, int64_t *world_size) {
    long long r = 0, w = 1;
    int used = -1;
    if (!strcmp(name, "journal.jsonl")) used = 0;
    else if (sscanf(name, "journal_rank%lldof%lld.jsonl%n", &r, &w, &used) != 2 || used < 0 || name[used]) return 0;
    *rank = r;
    *world_size = w;
    return 1;
}
int ranks_read_folder(book *b, const char *folder, const journal *own) {
    DIR *d = opendir(folder);
    int64_t rank, world_size;
    text_list names = {NULL, 0};
    int code = 0;
    if (!d) return complain(EXIT_INPUT, "%s: %s", folder, strerror(errno));
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (parse_journal_name(e->d_name, &rank, &world_size)) text_list_copy(&names, e->d_name);
    closedir(d);
    text_list_sort(&names, 0);
    for (size_t i = 0; i < names.count && !code; i++) {
        char *path = join_path(folder, names.items[i]);
        if (own && !strcmp(path, own->path)) code = book_read(b, path, own->fd, 0);
        else {
            int fd = open(path, O_RDONLY);
            struct stat info;
            if (fd < 0 || fstat(fd, &info)) code = complain(EXIT_INPUT, "%s: %s", path, strerror(errno));
            else if (info.st_size) code = book_read(b, path, fd, 1);
            else close(fd); /* of a rank that has just begun */
        }
        free(path);
    }
    text_list_free(&names);
    return code;
}
static book_file *book_rank(const book *b, int64_t rank) {
    for (int32_t i = 0; i < b->file_count; i++) if (b->files[i].rank == rank) return &b->files[i];
    return NULL;
}
/* One sweep's journals, each once, of one kind of device. Whether all of them are there is another question. */
static int check_parts(const book *b) {
    const book_file *first = b->files;
    for (int32_t i = 1; i < b->file_count; i++) {
        const book_file *f = &b->files[i];
        if (f->world_size != first->world_size)
            return complain(EXIT_USAGE, "%s is of %lld processes, %s of %lld: they are no parts of one sweep", first->path,
                            (long long)first->world_size, f->path, (long long)f->world_size);
        if (book_rank(b, f->rank) != f)
            return complain(EXIT_USAGE, "%s and %s are both of rank %lld: they overlap", book_rank(b, f->rank)->path, f->path, (long long)f->rank);
        if (f->grid != first->grid)
            return complain(EXIT_USAGE, "%s and %s have different grids: run the same command on every rank", first->path, f->path);
        if (f->knows_device && first->knows_device && f->on_gpu != first->on_gpu)
            return complain(EXIT_USAGE, "%s was measured on %s, %s on %s: their times do not belong into one file", first->path, first->device,
                            f->path, f->device);
    }
    return 0;
}
int64_t ranks_missing(const book *b, char *text, size_t capacity) {
    int64_t missing = 0, world_size = b->files[0].world_size;
    size_t used = 0;
    text[0] = 0;
    for (int64_t r = 0; r < world_size && r < 1000000; r++) {
        const book_file *f = book_rank(b, r);
        if (f && f->is_finished) continue;
        if (missing++ < 4)
            used += (size_t)snprintf(text + used, capacity - used, "%srank %lld (%s)", missing > 1 ? ", " : "", (long long)r,
                                     !f ? "no journal" : journal_is_locked(f->fd) ? "still running" : "stopped");
        else if (missing == 6) used += (size_t)snprintf(text + used, capacity - used, " and more");
    }
    return missing;
}
static int64_t missing_points(const book *b) {
    int64_t missing = 0;
    for (int32_t i = 0; i < b->cell_count; i++)
        if (b->cells[i].is_wanted) missing += b->sets[b->cells[i].set].sample_count - b->cells[i].closed;
    return missing;
}
int ranks_merge(book *b, const char *folder, int partial, summaries *results) {
    char text[400];
    int64_t missing;
    int code = check_parts(b);
    if (!code) code = book_sort(b);
    if (code) return code;
    if ((missing = ranks_missing(b, text, sizeof text)) > 0 && !partial)
        return complain(EXIT_WORK, "not merged: %lld of %lld ranks are not finished: %s; run the part of rank R with RANK=R WORLD_SIZE=%lld and "
                        "the same command, or merge with --partial", (long long)missing, (long long)b->files[0].world_size, text,
                        (long long)b->files[0].world_size);
    if ((missing = missing_points(b)) > 0 && !partial)
        return complain(EXIT_WORK, "not merged: %lld points are missing, their lines are damaged; run the same sweep command again, or merge with "
                        "--partial", (long long)missing);
    return results_write(b, folder, results);
}
void ranks_state(const book *b, char *text, size_t capacity) {
    uint64_t h = hash_text(HASH_START, VLMPROF_VERSION);
    for (int64_t r = 0; r < b->files[0].world_size && book_rank(b, r); r++) h = hash_number(h, book_rank(b, r)->end);
    snprintf(text, capacity, "merged %s %016llx\n", b->plan, (unsigned long long)h);
}
int ranks_lock(const char *folder) {
    char *path = join_path(folder, ".vlmprof-merge");
    int fd = open(path, O_RDWR | O_CREAT, 0666);
    if (fd < 0) complain(EXIT_OUTPUT, "%s cannot be opened: %s", path, strerror(errno));
    else journal_lock(fd, 1);
    free(path);
    return fd;
}
