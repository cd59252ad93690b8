/* files.c: folders, paths, reading and writing of whole files.
 * Paths come in as text; messages go to stderr and exit codes go out. */
#include "base/files.h"

#include "base/console.h"
#include "vlmprof_file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

const char *no_folder_reason(const char *path) {
    struct stat info;
    if (stat(path, &info)) return errno == ENOENT ? "no such folder" : strerror(errno);
    errno = ENOTDIR;
    return !S_ISDIR(info.st_mode) ? "this is not a folder" : access(path, R_OK | X_OK) ? strerror(errno) : NULL;
}
int is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}
int make_folder(const char *path) {
    if (!*path) return complain(EXIT_USAGE, "the name of the output folder is empty");
    char *prefix = copy_text(path, strlen(path));
    for (char *end = prefix + 1;; end++) {
        char kept = *end;
        if (kept != '/' && kept) continue;
        *end = 0;
        if (mkdir(prefix, 0777) && (errno != EEXIST || !is_folder(prefix))) {
            int code = complain(EXIT_OUTPUT, "%s: cannot create the folder: %s", prefix,
                                errno == EEXIST ? "a file with this name already exists" : strerror(errno));
            free(prefix);
            return code;
        }
        *end = kept;
        if (!kept) break;
    }
    free(prefix);
    return 0;
}
size_t line_read(FILE *file, char **text, size_t *capacity, size_t most) {
    size_t bytes = 0;
    int byte = 0;
    if (!*capacity) *text = resize(*text, *capacity = 256, 1);
    while (byte != '\n' && (byte = getc_unlocked(file)) != EOF) {
        if (bytes < most) {
            if (bytes + 1 >= *capacity) *text = resize(*text, *capacity *= 2, 1);
            (*text)[bytes] = (char)byte;
        }
        bytes++;
    }
    (*text)[bytes < most ? bytes : most] = 0;
    return bytes;
}
const char *line_limit_text(char *out, size_t capacity, int64_t number, uint64_t bytes) {
    snprintf(out, capacity, "line %lld has %llu bytes; the limit is %d MB", (long long)number,
             (unsigned long long)bytes, LINE_BYTES_MOST / 1000000);
    return out;
}
char *join_path(const char *folder, const char *name) {
    struct text_buffer path = {NULL, 0, 0};
    text_add_string(&path, folder);
    if (path.bytes && path.data[path.bytes - 1] != '/') text_add(&path, "/", 1);
    text_add_string(&path, name);
    return path.data;
}

int file_is_in(const char *folder, const char *name) {
    char *path = join_path(folder, name);
    const int there = access(path, F_OK) == 0;
    free(path);
    return there;
}
int file_read_in(const char *folder, const char *name, char **text, size_t *bytes, uint64_t *identity) {
    vp_error error = {VP_OK, -1, "", ""};
    char *path = join_path(folder, name);
    vp_result result = vp_file_read(path, JSON_FILE_BYTES_MAX, text, bytes, &error);
    int code = result == VP_OK ? 0 : complain_result(exit_code_of(result), path, result, &error);
    if (result == VP_OK && identity) *identity = hash_bytes(*identity, *text, *bytes);
    free(path);
    return code;
}
int is_image_name(const char *name) {
    static const char *const ends[] = {"jpg", "jpeg", "jpe", "jfif", "mpo", "png", "apng", "gif", "webp"};
    const char *dot = strrchr(name, '.');
    if (name[0] == '.' || !dot) return 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t at = 0;
        while (dot[at + 1] && tolower((unsigned char)dot[at + 1]) == ends[i][at]) at++;
        if (!dot[at + 1] && !ends[i][at]) return 1;
    }
    return 0;
}

void leave_out(struct left_out *left_out, const char *name) {
    if (name[0] == '.') return;
    if (!left_out->count++ || strncmp(name, left_out->first, sizeof left_out->first - 1) < 0)
        snprintf(left_out->first, sizeof left_out->first, "%s", name);
}
void say_left_out(const char *folder, const struct left_out *left_out) {
    if (left_out->count)
        print_note("vlmprof: %s: skipped %zu file%s that %s not named as a PNG, JPEG, GIF or WebP: %s%s\n", folder,
                   left_out->count, plural_s((int64_t)left_out->count), left_out->count == 1 ? "is" : "are",
                   left_out->first, left_out->count > 1 ? ", .." : "");
}
int names_of_folder(const char *folder, struct text_list *names) {
    DIR *listing = opendir(folder);
    const struct dirent *entry = NULL;
    int error = listing ? 0 : errno;
    do {
        errno = 0; /* readdir returns NULL at the end and after an error */
        entry = listing ? readdir(listing) : NULL;
        if (listing && !entry) error = errno;
        if (entry && strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) text_list_copy(names, entry->d_name);
    } while (entry);
    if (listing) closedir(listing);
    text_list_sort(names, 0);
    if (!error) return 0;
    return complain(error == ENOMEM ? EXIT_DEVICE : EXIT_INPUT, "%s: the folder cannot be read: %s", folder,
                    strerror(error));
}
int folder_check(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash && slash > path ? copy_text(path, (size_t)(slash - path)) : NULL;
    int code = 0;
    if (is_folder(path)) code = complain(EXIT_OUTPUT, "%s: cannot be written: it is a folder", path);
    else if (folder && vp_path_kind(folder) == VP_PATH_NONE)
        code = complain(EXIT_OUTPUT, "%s: cannot be written: there is no folder %s", path, folder);
    else if (folder && !is_folder(folder))
        code = complain(EXIT_OUTPUT, "%s: cannot be written: %s: %s", path, folder, no_folder_reason(folder));
    free(folder);
    return code;
}
int file_write(const char *path, const char *data, size_t bytes) {
    vp_error error = {VP_OK, -1, "", ""};
    fflush(stdout); /* the path may be stdout: earlier output comes first */
    vp_result result = vp_file_write(path, data, bytes, &error);
    return result == VP_OK ? 0 : complain_result(exit_code_of(result), path, result, &error);
}
int file_write_whole(const char *folder, const char *name, const char *data, size_t bytes) {
    char *path = join_path(folder, name);
    int code = file_write(path, data, bytes);
    free(path);
    return code;
}
int file_write_text(const char *path, const struct text_buffer *out) { return file_write(path, out->data, out->bytes); }
