/* ranks.c: finds and merges the journals of a sweep's processes. */
#include "sweep/ranks.h"

#include "base/console.h"
#include "base/files.h"
#include "vlmprof_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

int can_parse_journal_name(const char *name, int64_t *rank, int64_t *world_size) {
    long long found_rank = 0, found_size = 1;
    int used = -1;
    if (!strcmp(name, "journal.jsonl")) used = 0;
    else if (sscanf(name, "journal_rank%lldof%lld.jsonl%n", &found_rank, &found_size, &used) != 2 || used < 0
             || name[used])
        return 0;
    *rank = found_rank;
    *world_size = found_size;
    return 1;
}
int ranks_read_folder(struct journal_index *index, const char *folder, const struct journal *own) {
    int64_t rank, world_size;
    struct text_list names = {NULL, 0};
    int code = names_of_folder(folder, &names);
    for (size_t i = 0; i < names.count && !code; i++) {
        if (!can_parse_journal_name(names.items[i], &rank, &world_size)) continue;
        char *path = join_path(folder, names.items[i]);
        index->is_read_again = own && !strcmp(path, own->path);
        if (index->is_read_again) code = index_read(index, path, own->fd, 0);
        else {
            vp_error error = {VP_OK, -1, "", ""};
            struct stat info;
            int fd = -1;
            vp_result result = vp_file_open(path, &fd, &error);
            if (result != VP_OK) code = complain_result(exit_code_of(result), path, result, &error);
            else if (fstat(fd, &info)) code = complain(EXIT_INPUT, "%s: %s", path, strerror(errno));
            else if (info.st_size) code = index_read(index, path, fd, 1);
            else close(fd); /* journal of a rank that has just started */
        }
        free(path);
    }
    text_list_free(&names);
    if (!code && own && !index->file_count) code = complain(EXIT_INPUT, "%s no longer exists", own->path);
    return code;
}
static struct index_file *index_rank(const struct journal_index *index, int64_t rank) {
    for (int32_t i = 0; i < index->file_count; i++) if (index->files[i].rank == rank) return &index->files[i];
    return NULL;
}
/* Checks that the journals belong to one sweep and one kind of device, without duplicates; some may be missing. Returns
 * 0 or an exit code. */
static int check_parts(const struct journal_index *index) {
    const struct index_file *first = index->files;
    for (int32_t i = 1; i < index->file_count; i++) {
        const struct index_file *file = &index->files[i];
        if (file->world_size != first->world_size)
            return complain(EXIT_USAGE, "%s is from %lld processes, %s from %lld: they do not belong to the same sweep",
                            first->path, (long long)first->world_size, file->path, (long long)file->world_size);
        if (index_rank(index, file->rank) != file)
            return complain(EXIT_USAGE, "%s and %s are both from rank %lld: they overlap",
                            index_rank(index, file->rank)->path, file->path, (long long)file->rank);
        if (file->grid != first->grid)
            return complain(EXIT_USAGE, "%s and %s have different grids: run the same command on every rank",
                            first->path, file->path);
        if (file->knows_device && first->knows_device && file->on_gpu != first->on_gpu)
            return complain(EXIT_USAGE, "%s was measured on %s, %s on %s: their times do not belong in one file",
                            first->path, first->device, file->path, file->device);
    }
    return 0;
}
int64_t ranks_missing(const struct journal_index *index, char *text, size_t capacity) {
    int64_t missing = 0, world_size = index->files[0].world_size;
    size_t used = 0;
    text[0] = 0;
    for (int64_t rank = 0; rank < world_size && rank < 1000000; rank++) {
        const struct index_file *file = index_rank(index, rank);
        if (file && file->is_finished) continue;
        if (missing++ < 4)
            used += (size_t)snprintf(text + used, capacity - used, "%srank %lld (%s)", missing > 1 ? ", " : "",
                                     (long long)rank,
                                     !file                         ? "no journal"
                                     : journal_is_locked(file->fd) ? "still running"
                                                                   : "stopped");
        else if (missing == 6) used += (size_t)snprintf(text + used, capacity - used, " and more");
    }
    return missing;
}
/* The number of points in the newest grid without a last line. */
static int64_t missing_points(const struct journal_index *index) {
    int64_t missing = 0;
    for (int32_t i = 0; i < index->configuration_count; i++)
        if (index->configurations[i].is_wanted)
            missing += index->sets[index->configurations[i].set].data.num_samples - index->configurations[i].closed;
    return missing;
}
int ranks_merge(struct journal_index *index, const char *folder, int partial, struct summaries *results) {
    char text[400];
    int64_t missing;
    int code = check_parts(index);
    if (!code) code = index_sort(index);
    if (code) return code;
    if ((missing = ranks_missing(index, text, sizeof text)) > 0 && !partial)
        return complain(EXIT_WORK,
                        "not merged: %lld of %lld ranks are not finished: %s; run the part of rank R with RANK=R "
                        "WORLD_SIZE=%lld and the same command, or merge with --partial",
                        (long long)missing, (long long)index->files[0].world_size, text,
                        (long long)index->files[0].world_size);
    if ((missing = missing_points(index)) > 0 && !partial)
        return complain(
            EXIT_WORK,
            "not merged: %lld points are missing because their lines are damaged; run the same sweep command again, or "
            "merge with --partial",
            (long long)missing);
    return results_write(index, folder, results);
}
void ranks_state(const struct journal_index *index, char *text, size_t capacity) {
    uint64_t hash = hash_text(HASH_START, VLMPROF_VERSION);
    for (int64_t rank = 0; rank < index->files[0].world_size && index_rank(index, rank); rank++)
        hash = hash_number(hash, index_rank(index, rank)->end);
    snprintf(text, capacity, "merged %s %016llx\n", index->plan, (unsigned long long)hash);
}
int ranks_lock(const char *folder) {
    char *path = join_path(folder, ".vlmprof-merge");
    int fd = journal_open_file(path);
    free(path);
    if (fd < 0 || !journal_lock(fd, 1)) return fd;
    close(fd); /* interrupted by a signal */
    return -1;
}
